package sluice;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.JobExecutionResult;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;

/** What a user's main method gets from {@code getExecutionEnvironment}: its job is shaped before it is submitted. */
@SuppressWarnings("try")
final class ShapedEnvironment extends StreamExecutionEnvironment {
    private final StreamExecutionEnvironment submitting;
    private final Shape shape;
    private final String jobName;

    private ShapedEnvironment(StreamExecutionEnvironment submitting, Shape shape, String jobName) {
        super(new Configuration((Configuration) submitting.getConfiguration()), Run.class.getClassLoader());
        this.submitting = submitting;
        this.shape = shape;
        this.jobName = jobName;
    }

    /** Flink takes it back after the main method. */
    static void use(StreamExecutionEnvironment submitting, Shape shape, String jobName) {
        initializeContextEnvironment(configuration -> new ShapedEnvironment(submitting, shape, jobName));
    }

    @Override
    public StreamGraph getStreamGraph(boolean clearTransformations) {
        List<Transformation<?>> all = new ArrayList<>(getTransformations());
        return shape.of(all, () -> super.getStreamGraph(clearTransformations));
    }

    /** What the Table API submits. */
    @Override
    public StreamGraph generateStreamGraph(List<Transformation<?>> transformations) {
        return shape.of(transformations, () -> super.generateStreamGraph(transformations));
    }

    @Override
    public JobExecutionResult execute(StreamGraph graph) throws Exception {
        graph.setJobName(jobName);
        return submitting.execute(graph);
    }

    @Override
    public JobClient executeAsync(StreamGraph graph) throws Exception {
        graph.setJobName(jobName);
        return submitting.executeAsync(graph);
    }
}
