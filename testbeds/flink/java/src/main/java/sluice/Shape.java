package sluice;

import java.util.Collection;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.streaming.api.graph.StreamEdge;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.streaming.api.graph.StreamNode;
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

    /**
     * @param slotPerTask whether each operator takes slots of its own
     * @param spreadForward whether forward edges are then rebalanced
     * @param onlyRated whether sources whose rate cannot be set are refused
     */
    Shape(boolean slotPerTask, boolean spreadForward, boolean onlyRated) {
        this.slotPerTask = slotPerTask;
        this.spreadForward = spreadForward;
        this.onlyRated = onlyRated;
    }

    /** @param build makes the graph of the transformations */
    StreamGraph of(Collection<Transformation<?>> transformations, Supplier<StreamGraph> build) {
        shape(transformations, new HashSet<>());
        StreamGraph graph = build.get();
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
