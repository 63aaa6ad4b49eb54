import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.autoscaler.JobAutoScaler;
import org.apache.flink.autoscaler.JobAutoScalerContext;
import org.apache.flink.autoscaler.JobAutoScalerImpl;
import org.apache.flink.autoscaler.RestApiMetricsCollector;
import org.apache.flink.autoscaler.ScalingExecutor;
import org.apache.flink.autoscaler.ScalingMetricEvaluator;
import org.apache.flink.autoscaler.event.LoggingEventHandler;
import org.apache.flink.autoscaler.realizer.ScalingRealizer;
import org.apache.flink.autoscaler.state.InMemoryAutoScalerStateStore;
import org.apache.flink.autoscaler.tuning.ConfigChanges;
import org.apache.flink.client.program.rest.RestClusterClient;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.highavailability.nonha.standalone.StandaloneClientHAServices;

/**
 * The autoscaler of the Flink Kubernetes operator on a Flink of any kind: its own collector, evaluator and executor. What is
 * written here is only what its documentation leaves to whoever runs it: the loop, and the request that rescales in place.
 *
 * <p>Arguments: the REST address, milliseconds between two rounds, and a folder with a file of settings for each job, whose
 * name is the job's id.
 */
public final class OperatorAutoscaler {
    private OperatorAutoscaler() {}

    public static void main(String[] arguments) throws IOException {
        String url = arguments[0];
        long everyMs = Long.parseLong(arguments[1]);
        List<Path> files;
        try (var listed = Files.list(Path.of(arguments[2]))) {
            files = listed.sorted().collect(Collectors.toCollection(ArrayList::new));
        }
        var pool = Executors.newScheduledThreadPool(Math.max(1, files.size()));
        for (Path file : files) {
            var round = new Round(url, JobID.fromHexString(file.getFileName().toString()), settings(file));
            pool.scheduleAtFixedRate(round, everyMs, everyMs, TimeUnit.MILLISECONDS);
        }
    }

    private static Configuration settings(Path file) throws IOException {
        var read = new Properties();
        try (var reader = Files.newBufferedReader(file)) {
            read.load(reader);
        }
        var settings = new Configuration();
        read.stringPropertyNames().forEach(name -> settings.setString(name, read.getProperty(name)));
        return settings;
    }

    /** One round of one job, which fails alone. */
    private static final class Round implements Runnable {
        private final String url;
        private final JobID job;
        private final Configuration settings;
        private final JobAutoScaler<JobID, JobAutoScalerContext<JobID>> autoscaler;

        Round(String url, JobID job, Configuration settings) {
            this.url = url;
            this.job = job;
            this.settings = settings;
            var events = new LoggingEventHandler<JobID, JobAutoScalerContext<JobID>>();
            var store = new InMemoryAutoScalerStateStore<JobID, JobAutoScalerContext<JobID>>();
            autoscaler =
                    new JobAutoScalerImpl<>(
                            new RestApiMetricsCollector<>(),
                            new ScalingMetricEvaluator(),
                            new ScalingExecutor<>(events, store),
                            events,
                            new InPlace(url),
                            store);
        }

        @Override
        public void run() {
            try {
                autoscaler.scale(
                        new JobAutoScalerContext<>(
                                job, job, status(), settings, new UnregisteredMetricsGroup(), this::client));
            } catch (Exception e) {
                System.err.printf("%s: this round failed: %s%n", job, e);
            }
        }

        private JobStatus status() throws Exception {
            try (var client = client()) {
                return client.getJobStatus(job).get(10, TimeUnit.SECONDS);
            }
        }

        private RestClusterClient<String> client() throws Exception {
            return new RestClusterClient<>(settings, "flink", (c, e) -> new StandaloneClientHAServices(url));
        }
    }

    /** Rescales in place: between one task and so many as were decided, as the operator asks for. */
    private static final class InPlace implements ScalingRealizer<JobID, JobAutoScalerContext<JobID>> {
        private final HttpClient http = HttpClient.newHttpClient();
        private final String url;
        private String asked = "";

        InPlace(String url) {
            this.url = url;
        }

        @Override
        public void realizeParallelismOverrides(JobAutoScalerContext<JobID> context, Map<String, String> tasks)
                throws Exception {
            String body =
                    tasks.entrySet().stream()
                            .sorted(Map.Entry.comparingByKey())
                            .map(
                                    one ->
                                            String.format(
                                                    "\"%s\":{\"parallelism\":{\"lowerBound\":1,\"upperBound\":%s}}",
                                                    one.getKey(), one.getValue()))
                            .collect(Collectors.joining(",", "{", "}"));
            if (body.equals(asked) || context.getJobStatus() != JobStatus.RUNNING) {
                return;
            }
            var address = URI.create(url + "/jobs/" + context.getJobID() + "/resource-requirements");
            var request = HttpRequest.newBuilder(address).PUT(HttpRequest.BodyPublishers.ofString(body)).build();
            var answer = http.send(request, HttpResponse.BodyHandlers.ofString());
            if (answer.statusCode() != 200) {
                throw new IOException("Flink refused " + body + ": " + answer.body());
            }
            asked = body;
            System.out.printf("%s: asked for %s%n", context.getJobID(), body);
        }

        @Override
        public void realizeConfigOverrides(JobAutoScalerContext<JobID> context, ConfigChanges changes) {
            // Memory is not tuned here.
        }
    }
}
