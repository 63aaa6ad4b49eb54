package org.apache.flink.runtime.scheduler.adaptive.allocator;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.flink.runtime.clusterframework.types.AllocationID;
import org.apache.flink.runtime.clusterframework.types.ResourceProfile;
import org.apache.flink.runtime.instance.SlotSharingGroupId;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.jobmanager.scheduler.SlotSharingGroup;
import org.apache.flink.runtime.jobmaster.LogicalSlot;
import org.apache.flink.runtime.jobmaster.SlotInfo;
import org.apache.flink.runtime.jobmaster.SlotRequestId;
import org.apache.flink.runtime.scheduler.adaptive.JobSchedulingPlan;
import org.apache.flink.runtime.scheduler.adaptive.JobSchedulingPlan.SlotAssignment;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import org.apache.flink.runtime.util.ResourceCounter;
import sluice.Placement;

/**
 * Replaces the class of this name in Flink 1.20 (its jar comes first on the class path) and gives each task the
 * slot on the TaskManager that a {@link Placement} names (CAPSys section 5.1). With a placement, a job asks for all slots
 * of the cluster and keeps those it uses; without one, its tasks take slots in the order they are offered. Either way a
 * job runs with the parallelism it was asked for, or waits: a measurement of another parallelism would be worth nothing.
 */
public class SlotSharingSlotAllocator implements SlotAllocator {
    private final ReserveSlotFunction reserve;
    private final FreeSlotFunction free;
    private final IsSlotAvailableAndFreeFunction isFree;

    private SlotSharingSlotAllocator(
            ReserveSlotFunction reserve, FreeSlotFunction free, IsSlotAvailableAndFreeFunction isFree) {
        this.reserve = reserve;
        this.free = free;
        this.isFree = isFree;
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
    public ResourceCounter calculateRequiredSlots(Iterable<JobInformation.VertexInformation> vertices) {
        Map<SlotSharingGroupId, Integer> groups = new HashMap<>();
        for (JobInformation.VertexInformation vertex : vertices) {
            groups.merge(vertex.getSlotSharingGroup().getSlotSharingGroupId(), vertex.getParallelism(), Math::max);
        }
        int needed = groups.values().stream().mapToInt(Integer::intValue).sum();
        return ResourceCounter.withResource(
                ResourceProfile.UNKNOWN, Math.max(needed, Placement.current().clusterSlots()));
    }

    @Override
    public Optional<VertexParallelism> determineParallelism(
            JobInformation job, Collection<? extends SlotInfo> slots) {
        int needed = calculateRequiredSlots(job.getVertices()).getTotalResourceCount();
        return slots.size() < needed ? Optional.empty() : Optional.of(parallelism(job));
    }

    private static VertexParallelism parallelism(JobInformation job) {
        Map<JobVertexID, Integer> tasks = new HashMap<>();
        for (JobInformation.VertexInformation vertex : job.getVertices()) {
            tasks.put(vertex.getJobVertexID(), vertex.getParallelism());
        }
        return new VertexParallelism(tasks);
    }

    @Override
    public Optional<JobSchedulingPlan> determineParallelismAndCalculateAssignment(
            JobInformation job, Collection<? extends SlotInfo> slots, JobAllocationsInformation previous) {
        return determineParallelism(job, slots)
                .map(tasks -> new JobSchedulingPlan(tasks, assign(sharing(job, tasks), new ArrayList<>(slots))));
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

    /** Tasks that the placement names come first, so that no other takes the slot they need. */
    private static List<SlotAssignment> assign(List<List<ExecutionVertexID>> tasks, List<SlotInfo> free) {
        Placement placement = Placement.current();
        List<SlotAssignment> assigned = new ArrayList<>();
        List<List<ExecutionVertexID>> anywhere = new ArrayList<>();
        for (List<ExecutionVertexID> sharing : tasks) {
            Optional<String> worker = placement.workerOf(sharing);
            if (worker.isPresent()) {
                assigned.add(new SlotAssignment(takeSlot(free, worker.get(), sharing), sharing));
            } else {
                anywhere.add(sharing);
            }
        }
        for (List<ExecutionVertexID> sharing : anywhere) {
            assigned.add(new SlotAssignment(free.remove(0), sharing));
        }
        return assigned;
    }

    private static SlotInfo takeSlot(List<SlotInfo> free, String worker, List<ExecutionVertexID> sharing) {
        for (SlotInfo slot : free) {
            if (slot.getTaskManagerLocation().getResourceID().toString().equals(worker)) {
                free.remove(slot);
                return slot;
            }
        }
        throw new IllegalStateException("the placement puts " + sharing + " on TaskManager " + worker
                + ", which has no slot left for it");
    }

    @Override
    @SuppressWarnings("unchecked")
    public Optional<ReservedSlots> tryReserveResources(JobSchedulingPlan plan) {
        for (SlotAssignment assignment : plan.getSlotAssignments()) {
            if (!isFree.isSlotAvailableAndFree(assignment.getSlotInfo().getAllocationId())) {
                return Optional.empty();
            }
        }
        Map<ExecutionVertexID, LogicalSlot> reserved = new HashMap<>();
        for (SlotAssignment assignment : plan.getSlotAssignments()) {
            SharedSlot slot = reserved(assignment.getSlotInfo());
            for (ExecutionVertexID task : (List<ExecutionVertexID>) assignment.getTarget()) {
                reserved.put(task, slot.allocateLogicalSlot());
            }
        }
        return Optional.of(ReservedSlots.create(reserved));
    }

    private SharedSlot reserved(SlotInfo slot) {
        AllocationID id = slot.getAllocationId();
        return new SharedSlot(new SlotRequestId(), reserve.reserveSlot(id, ResourceProfile.UNKNOWN),
                slot.willBeOccupiedIndefinitely(), () -> free.freeSlot(id, null, System.currentTimeMillis()));
    }
}
