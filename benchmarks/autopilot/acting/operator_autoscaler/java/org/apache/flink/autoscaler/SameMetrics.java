package org.apache.flink.autoscaler;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.autoscaler.event.LoggingEventHandler;
import org.apache.flink.autoscaler.metrics.FlinkMetric;
import org.apache.flink.autoscaler.realizer.ScalingRealizer;
import org.apache.flink.autoscaler.state.AutoScalerStateStore;
import org.apache.flink.autoscaler.state.InMemoryAutoScalerStateStore;
import org.apache.flink.autoscaler.topology.IOMetrics;
import org.apache.flink.autoscaler.topology.JobTopology;
import org.apache.flink.autoscaler.topology.ShipStrategy;
import org.apache.flink.autoscaler.topology.VertexInfo;
import org.apache.flink.autoscaler.tuning.ConfigChanges;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.rest.messages.job.JobDetailsInfo;
import org.apache.flink.runtime.rest.messages.job.metrics.AggregatedMetric;
import org.apache.flink.runtime.rest.messages.job.metrics.Metric;

/**
 * The operator's autoscaler on metrics that it is given, on a clock that it is given: what would it do?
 *
 * <p>In its package, as its own tests are, since the clock and the collector are not public. Standard input has settings,
 * {@code NAME=VALUE}, an empty line, and then a line for each round of a job whose vertices are a line:
 *
 * <pre>NOW_MS STARTED_MS LAG, and for each vertex TASKS MOST_TASKS READ SENT BUSY_MS READ_PER_S BUSY BACKPRESSURED</pre>
 *
 * READ, SENT and BUSY_MS are totals since the job started, of all tasks; BUSY and BACKPRESSURED shares of time. The answer
 * to a round is a line: the tasks that it wants, or those that there are.
 */
public final class SameMetrics {
    private static final JobID JOB = new JobID(0, 1);

    private SameMetrics() {}

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var settings = new Configuration();
        for (String line = in.readLine(); line != null && !line.isEmpty(); line = in.readLine()) {
            int at = line.indexOf('=');
            settings.setString(line.substring(0, at), line.substring(at + 1));
        }
        var rounds = new Rounds(settings);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(rounds.next(line.split(" ")));
        }
    }

    /** One vertex as it is reported. */
    private static final class Reported {
        static final int FIELDS = 8;
        final JobVertexID id;
        final int tasks;
        final int mostTasks;
        final double read;
        final double sent;
        final double busyMs;
        final double readPerS;
        final double busy;
        final double backpressured;

        Reported(int number, String[] fields, int from) {
            id = new JobVertexID(0, number + 1);
            tasks = Integer.parseInt(fields[from]);
            mostTasks = Integer.parseInt(fields[from + 1]);
            read = Double.parseDouble(fields[from + 2]);
            sent = Double.parseDouble(fields[from + 3]);
            busyMs = Double.parseDouble(fields[from + 4]);
            readPerS = Double.parseDouble(fields[from + 5]);
            busy = Double.parseDouble(fields[from + 6]);
            backpressured = Double.parseDouble(fields[from + 7]);
        }

        Map<FlinkMetric, AggregatedMetric> metrics(boolean source, double lag) {
            var made = new HashMap<FlinkMetric, AggregatedMetric>();
            made.put(FlinkMetric.BUSY_TIME_PER_SEC, ofTasks(1000 * busy));
            if (source) {
                made.put(FlinkMetric.SOURCE_TASK_NUM_RECORDS_IN, ofTasks(read / tasks));
                made.put(FlinkMetric.SOURCE_TASK_NUM_RECORDS_OUT, ofTasks(sent / tasks));
                made.put(FlinkMetric.SOURCE_TASK_NUM_RECORDS_IN_PER_SEC, ofTasks(readPerS / tasks));
                made.put(FlinkMetric.BACKPRESSURE_TIME_PER_SEC, ofTasks(1000 * backpressured));
                made.put(FlinkMetric.PENDING_RECORDS, ofTasks(lag / tasks));
            }
            return made;
        }

        private AggregatedMetric ofTasks(double one) {
            return new AggregatedMetric("", one, one, one, one * tasks, 0.0);
        }

        VertexInfo info(JobVertexID upstream) {
            Map<JobVertexID, ShipStrategy> inputs = upstream == null ? Map.of() : Map.of(upstream, ShipStrategy.REBALANCE);
            var flow = new IOMetrics(upstream == null ? 0 : Math.round(read), Math.round(sent), busyMs);
            return new VertexInfo(id, inputs, tasks, mostTasks, flow);
        }
    }

    /** The autoscaler between its clock, its collector and what it asks for. */
    private static final class Rounds {
        private final Configuration settings;
        private final Given collector = new Given();
        private final Map<String, String> wanted = new HashMap<>();
        private final JobAutoScalerImpl<JobID, JobAutoScalerContext<JobID>> autoscaler;

        Rounds(Configuration settings) {
            this.settings = settings;
            var events = new LoggingEventHandler<JobID, JobAutoScalerContext<JobID>>();
            var store = new InMemoryAutoScalerStateStore<JobID, JobAutoScalerContext<JobID>>();
            var realizer =
                    new ScalingRealizer<JobID, JobAutoScalerContext<JobID>>() {
                        @Override
                        public void realizeParallelismOverrides(
                                JobAutoScalerContext<JobID> context, Map<String, String> tasks) {
                            wanted.putAll(tasks);
                        }

                        @Override
                        public void realizeConfigOverrides(
                                JobAutoScalerContext<JobID> context, ConfigChanges changes) {
                            // Memory is not tuned here.
                        }
                    };
            autoscaler =
                    new JobAutoScalerImpl<>(
                            collector,
                            new ScalingMetricEvaluator(),
                            new ScalingExecutor<>(events, store),
                            events,
                            realizer,
                            store);
        }

        String next(String[] fields) throws Exception {
            var clock = Clock.fixed(Instant.ofEpochMilli(Long.parseLong(fields[0])), ZoneOffset.UTC);
            autoscaler.setClock(clock);
            collector.setClock(clock);
            collector.take(fields);
            autoscaler.scale(
                    new JobAutoScalerContext<>(
                            JOB, JOB, JobStatus.RUNNING, settings, new UnregisteredMetricsGroup(), () -> null));
            var answer = new ArrayList<String>();
            for (Reported vertex : collector.vertices.values()) {
                answer.add(wanted.getOrDefault(vertex.id.toString(), String.valueOf(vertex.tasks)));
            }
            return String.join(" ", answer);
        }
    }

    /** Reports what it was given. */
    private static final class Given extends ScalingMetricCollector<JobID, JobAutoScalerContext<JobID>> {
        final Map<JobVertexID, Reported> vertices = new LinkedHashMap<>();
        private Instant started = Instant.EPOCH;
        private double lag;

        void take(String[] fields) {
            started = Instant.ofEpochMilli(Long.parseLong(fields[1]));
            lag = Double.parseDouble(fields[2]);
            vertices.clear();
            for (int number = 0; 3 + number * Reported.FIELDS < fields.length; number++) {
                var vertex = new Reported(number, fields, 3 + number * Reported.FIELDS);
                vertices.put(vertex.id, vertex);
            }
        }

        @Override
        public JobDetailsInfo getJobDetailsInfo(JobAutoScalerContext<JobID> context, Duration timeout) {
            return null;
        }

        @Override
        protected Instant getJobRunningTs(JobDetailsInfo job) {
            return started;
        }

        @Override
        protected JobTopology getJobTopology(
                JobAutoScalerContext<JobID> context,
                AutoScalerStateStore<JobID, JobAutoScalerContext<JobID>> store,
                JobDetailsInfo job) {
            List<VertexInfo> made = new ArrayList<>();
            JobVertexID upstream = null;
            for (Reported vertex : vertices.values()) {
                made.add(vertex.info(upstream));
                upstream = vertex.id;
            }
            return new JobTopology((Collection<VertexInfo>) made);
        }

        @Override
        protected Map<JobVertexID, Map<String, FlinkMetric>> queryFilteredMetricNames(
                JobAutoScalerContext<JobID> context, JobTopology topology) {
            return Map.of();
        }

        @Override
        protected Map<JobVertexID, Map<FlinkMetric, AggregatedMetric>> queryAllAggregatedMetrics(
                JobAutoScalerContext<JobID> context, Map<JobVertexID, Map<String, FlinkMetric>> names) {
            var made = new HashMap<JobVertexID, Map<FlinkMetric, AggregatedMetric>>();
            boolean source = true;
            for (Reported vertex : vertices.values()) {
                made.put(vertex.id, vertex.metrics(source, lag));
                source = false;
            }
            return made;
        }

        @Override
        protected Map<FlinkMetric, Metric> queryJmMetrics(JobAutoScalerContext<JobID> context) {
            return Map.of(
                    FlinkMetric.NUM_TASK_SLOTS_TOTAL, new Metric("", "100000"),
                    FlinkMetric.NUM_TASK_SLOTS_AVAILABLE, new Metric("", "100000"));
        }

        @Override
        protected Map<FlinkMetric, AggregatedMetric> queryTmMetrics(JobAutoScalerContext<JobID> context) {
            return Map.of();
        }
    }
}
