package org.apache.flink.runtime.scheduler.adaptive.allocator;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.jobmanager.scheduler.SlotSharingGroup;
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
                .map(tasks -> new JobSchedulingPlan(tasks, assigned(sharing(job, tasks), slots)));
    }

    /** The tasks that share each slot: those with the same number in the same slot sharing group. */
    private static List<List<ExecutionVertexID>> sharing(JobInformation job, VertexParallelism tasks) {
        List<List<ExecutionVertexID>> slots = new ArrayList<>();
        for (SlotSharingGroup group : job.getSlotSharingGroups()) {
            List<List<ExecutionVertexID>> ofGroup = new ArrayList<>();
            for (JobVertexID vertex : group.getJobVertexIds()) {
                for (int subtask = 0; subtask < tasks.getParallelism(vertex); subtask++) {
                    if (subtask == ofGroup.size()) {
                        ofGroup.add(new ArrayList<>());
                    }
                    ofGroup.get(subtask).add(new ExecutionVertexID(vertex, subtask));
                }
            }
            slots.addAll(ofGroup);
        }
        return slots;
    }

    private static List<SlotAssignment> assigned(
            List<List<ExecutionVertexID>> groups, Collection<? extends SlotInfo> slots) {
        return Placement.current()
                .assigned(groups, Function.identity(), slots, PlacingSlotAllocator::taskManager).entrySet().stream()
                .map(one -> new SlotAssignment(one.getValue(), one.getKey()))
                .collect(Collectors.toList());
    }
}
