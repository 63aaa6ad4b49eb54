package sluice;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.streaming.api.graph.StreamEdge;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.streaming.api.graph.StreamGraphHasherV2;
import org.apache.flink.streaming.api.graph.StreamNode;
import org.apache.flink.streaming.api.graph.StreamingJobGraphGenerator;
import org.apache.flink.streaming.api.transformations.LegacySourceTransformation;
import org.apache.flink.streaming.api.transformations.PhysicalTransformation;
import org.apache.flink.streaming.api.transformations.SourceTransformation;
import org.apache.flink.streaming.runtime.partitioner.ForwardPartitioner;
import org.apache.flink.streaming.runtime.partitioner.RebalancePartitioner;
import sluice.source.RatedSource;

/** Prepares a job so that each of its operators can be measured and scaled separately. */
final class Shape {
    private final boolean slotPerTask;
    private final boolean spreadForward;
    private final boolean onlyRated;
    private final Map<String, String> tasks;

    /**
     * @param slotPerTask whether each operator takes slots of its own
     * @param spreadForward whether forward edges are then rebalanced
     * @param onlyRated whether sources whose rate cannot be set are refused
     * @param settings of the job
     */
    Shape(boolean slotPerTask, boolean spreadForward, boolean onlyRated, ReadableConfig settings) {
        this.slotPerTask = slotPerTask;
        this.spreadForward = spreadForward;
        this.onlyRated = onlyRated;
        this.tasks = settings.get(PipelineOptions.PARALLELISM_OVERRIDES);
    }

    /** @param build makes the graph of the transformations */
    StreamGraph of(Collection<Transformation<?>> transformations, Supplier<StreamGraph> build) {
        shape(transformations, new HashSet<>());
        StreamGraph graph = build.get();
        setTasks(graph);
        if (slotPerTask && spreadForward) {
            dealOutEvenly(graph);
        }
        return graph;
    }

    private void shape(Collection<Transformation<?>> transformations, Set<Integer> seen) {
        for (Transformation<?> transformation : transformations) {
            if (!seen.add(transformation.getId())) {
                continue;
            }
            if (onlyRated) {
                requireRated(transformation);
            }
            if (slotPerTask && transformation instanceof PhysicalTransformation) {
                transformation.setSlotSharingGroup("slots-" + transformation.getId());
            }
            shape(new HashSet<>(transformation.getInputs()), seen);
        }
    }

    /**
     * Flink 2 overrides the parallelism of vertices in job graphs only, and a program submits a stream graph. A chain is set
     * as a whole: else it would fall apart into vertices of other ids.
     */
    private void setTasks(StreamGraph graph) {
        if (tasks.isEmpty()) {
            return;
        }
        Map<Integer, Integer> wanted = new HashMap<>();
        new StreamGraphHasherV2().traverseStreamGraphAndGenerateHashes(graph).forEach((node, hash) -> {
            String number = tasks.get(new JobVertexID(hash).toHexString());
            if (number != null) {
                chainOf(graph.getStreamNode(node), graph, chained -> wanted.put(chained, Integer.valueOf(number)));
            }
        });
        wanted.forEach((node, number) -> graph.getStreamNode(node).setParallelism(number));
    }

    private static void chainOf(StreamNode head, StreamGraph graph, IntConsumer chained) {
        chained.accept(head.getId());
        for (StreamEdge edge : head.getOutEdges()) {
            if (StreamingJobGraphGenerator.isChainable(edge, graph)) {
                chainOf(graph.getStreamNode(edge.getTargetId()), graph, chained);
            }
        }
    }

    private static void requireRated(Transformation<?> transformation) {
        boolean rated = transformation instanceof SourceTransformation
                && ((SourceTransformation<?, ?, ?>) transformation).getSource() instanceof RatedSource;
        if (!rated && (transformation instanceof SourceTransformation
                || transformation instanceof LegacySourceTransformation)) {
            throw new IllegalArgumentException("the rate of every source must be set by Sluice, but that of '"
                    + transformation.getName() + "' cannot be; in SQL replace its table by a recorded file, in a jar"
                    + " make it with sluice.Rated");
        }
    }

    /**
     * Flink fixes edges as "forward" while all operators have a single task. Once their numbers of tasks differ, or change
     * later, some tasks would get more records than others.
     */
    private static void dealOutEvenly(StreamGraph graph) {
        for (StreamNode node : graph.getStreamNodes()) {
            for (StreamEdge edge : node.getOutEdges()) {
                if (edge.getPartitioner() instanceof ForwardPartitioner) {
                    edge.setPartitioner(new RebalancePartitioner<>());
                }
            }
        }
    }
}
