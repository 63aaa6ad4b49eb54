package org.apache.flink.runtime.scheduler.adaptive.allocator;

import java.util.Collection;
import java.util.stream.Collectors;
import org.apache.flink.runtime.jobmaster.slotpool.PhysicalSlot;
import org.apache.flink.runtime.scheduler.adaptive.JobSchedulingPlan.SlotAssignment;
import org.apache.flink.runtime.scheduler.adaptive.allocator.SlotSharingSlotAllocator.ExecutionSlotSharingGroup;
import sluice.Placement;

/** Matches slots as a {@link Placement} says. Flink has a setting for its own resolvers, but none for others. */
final class PlacedSlotMatchingResolver implements SlotMatchingResolver {
    private final Placement placement;

    PlacedSlotMatchingResolver(Placement placement) {
        this.placement = placement;
    }

    @Override
    public Collection<SlotAssignment> matchSlotSharingGroupWithSlots(
            Collection<ExecutionSlotSharingGroup> groups, Collection<PhysicalSlot> free) {
        return placement
                .assigned(groups, ExecutionSlotSharingGroup::getContainedExecutionVertices, free,
                        PlacingSlotAllocator::taskManager)
                .entrySet().stream()
                .map(one -> new SlotAssignment(one.getValue(), one.getKey()))
                .collect(Collectors.toList());
    }
}
