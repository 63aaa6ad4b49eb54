import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.kubernetes.operator.api.FlinkDeployment;
import org.apache.flink.kubernetes.operator.api.reconciler.ReconciliationMetadata;
import org.apache.flink.kubernetes.operator.api.spec.FlinkDeploymentSpec;
import org.apache.flink.kubernetes.operator.api.spec.KubernetesDeploymentMode;
import org.apache.flink.kubernetes.operator.api.utils.SpecUtils;
import org.apache.flink.kubernetes.operator.reconciler.diff.ReflectiveDiffBuilder;

/** What the operator makes of each change [before, after] of a FlinkDeployment: the type of its diff, and what it keeps of it. */
public final class Verdict {
    public static void main(String[] arguments) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        for (JsonNode change : mapper.readTree(System.in)) {
            FlinkDeployment before = mapper.treeToValue(change.get(0), FlinkDeployment.class);
            FlinkDeployment after = mapper.treeToValue(change.get(1), FlinkDeployment.class);
            FlinkDeploymentSpec was = before.getSpec(), is = after.getSpec();
            KubernetesDeploymentMode mode = KubernetesDeploymentMode.getDeploymentMode(is);
            String kept = SpecUtils.writeSpecWithMeta(is, ReconciliationMetadata.from(after));
            var type = new ReflectiveDiffBuilder<>(mode, was, is).build().getType();
            System.out.println(mapper.writeValueAsString(new String[] {type.name(), kept}));
        }
    }
}
