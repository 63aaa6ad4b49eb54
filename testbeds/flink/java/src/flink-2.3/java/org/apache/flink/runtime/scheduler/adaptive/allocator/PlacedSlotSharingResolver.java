package org.apache.flink.runtime.scheduler.adaptive.allocator;

import java.util.Collection;
import java.util.HashSet;
import java.util.stream.Collectors;
import org.apache.flink.runtime.scheduler.adaptive.allocator.SlotSharingSlotAllocator.ExecutionSlotSharingGroup;
import sluice.Placement;

/** Lets tasks share slots as a {@link Placement} says. */
final class PlacedSlotSharingResolver implements SlotSharingResolver {
    private final Placement placement;

    PlacedSlotSharingResolver(Placement placement) {
        this.placement = placement;
    }

    @Override
    public Collection<ExecutionSlotSharingGroup> getExecutionSlotSharingGroups(
            JobInformation job, VertexParallelism tasks) {
        return job.getSlotSharingGroups().stream()
                .flatMap(group -> placement.sharing(PlacingSlotAllocator.parallelismIn(group, tasks)).stream()
                        .map(sharing -> new ExecutionSlotSharingGroup(group, new HashSet<>(sharing))))
                .collect(Collectors.toList());
    }
}
