package org.apache.flink.runtime.scheduler.adaptive.allocator;

import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.flink.runtime.jobmaster.SlotInfo;
import org.apache.flink.runtime.scheduler.adaptive.JobSchedulingPlan;
import org.apache.flink.runtime.scheduler.adaptive.JobSchedulingPlan.SlotAssignment;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import sluice.Placement;

/**
 * Replaces the class of this name in Flink 1.20; see {@link PlacingSlotAllocator}. Tasks that a placement does not name take
 * slots in the order they are offered.
 */
public class SlotSharingSlotAllocator extends PlacingSlotAllocator {
    private SlotSharingSlotAllocator(
            ReserveSlotFunction reserve, FreeSlotFunction free, IsSlotAvailableAndFreeFunction isFree) {
        super(reserve, free, isFree);
    }

    /** Called by the adaptive scheduler; the last three settings have no meaning here. */
    public static SlotSharingSlotAllocator createSlotSharingSlotAllocator(
            ReserveSlotFunction reserve,
            FreeSlotFunction free,
            IsSlotAvailableAndFreeFunction isFree,
            boolean localRecoveryEnabled,
            String executionTarget,
            boolean minimalTaskManagerPreferred) {
        return new SlotSharingSlotAllocator(reserve, free, isFree);
    }

    @Override
    @SuppressWarnings("unchecked")
    Collection<ExecutionVertexID> tasksIn(SlotAssignment assignment) {
        return (List<ExecutionVertexID>) assignment.getTarget();
    }

    @Override
    public Optional<JobSchedulingPlan> determineParallelismAndCalculateAssignment(
            JobInformation job, Collection<? extends SlotInfo> slots, JobAllocationsInformation previous) {
        return determineParallelism(job, slots)
                .map(tasks -> new JobSchedulingPlan(tasks, placed(Placement.current(),
                        placement -> assigned(placement, sharing(placement, job, tasks), slots))));
    }

    private static List<List<ExecutionVertexID>> sharing(Placement placement, JobInformation job, VertexParallelism tasks) {
        return job.getSlotSharingGroups().stream()
                .flatMap(group -> placement.sharing(parallelismIn(group, tasks)).stream())
                .collect(Collectors.toList());
    }

    private static List<SlotAssignment> assigned(
            Placement placement, List<List<ExecutionVertexID>> groups, Collection<? extends SlotInfo> slots) {
        return placement
                .assigned(groups, Function.identity(), slots, PlacingSlotAllocator::taskManager).entrySet().stream()
                .map(one -> new SlotAssignment(one.getValue(), one.getKey()))
                .collect(Collectors.toList());
    }
}
