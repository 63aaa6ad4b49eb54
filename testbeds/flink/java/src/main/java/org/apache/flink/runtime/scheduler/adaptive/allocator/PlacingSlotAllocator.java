package org.apache.flink.runtime.scheduler.adaptive.allocator;

import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
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
 * Gives each task the slot on the TaskManager that a {@link Placement} names, shared with the tasks that it names (CAPSys
 * section 5.1). With a placement, a job
 * asks for all slots of the cluster and keeps those it uses. A job runs with the parallelism it was asked for, or waits, since
 * a measurement of another parallelism would be worth nothing; unless the placement allows fewer tasks.
 *
 * <p>What is the same for all versions of Flink. For each of them, a class {@code SlotSharingSlotAllocator} replaces Flink's
 * own of this name: the kit's jar comes first on the class path.
 */
abstract class PlacingSlotAllocator implements SlotAllocator {
    private final ReserveSlotFunction reserve;
    private final FreeSlotFunction free;
    private final IsSlotAvailableAndFreeFunction isFree;

    PlacingSlotAllocator(ReserveSlotFunction reserve, FreeSlotFunction free, IsSlotAvailableAndFreeFunction isFree) {
        this.reserve = reserve;
        this.free = free;
        this.isFree = isFree;
    }

    /** The tasks that share the slot of an assignment. */
    abstract Collection<ExecutionVertexID> tasksIn(SlotAssignment assignment);

    @Override
    public ResourceCounter calculateRequiredSlots(Iterable<JobInformation.VertexInformation> vertices) {
        return ResourceCounter.withResource(
                ResourceProfile.UNKNOWN, Math.max(sum(widest(vertices)), Placement.current().clusterSlots()));
    }

    /** Slots of each slot sharing group: those of the vertex with the most tasks. */
    private static Map<SlotSharingGroupId, Integer> widest(Iterable<JobInformation.VertexInformation> vertices) {
        Map<SlotSharingGroupId, Integer> groups = new LinkedHashMap<>();
        for (JobInformation.VertexInformation vertex : vertices) {
            groups.merge(vertex.getSlotSharingGroup().getSlotSharingGroupId(), vertex.getParallelism(), Math::max);
        }
        return groups;
    }

    private static int sum(Map<SlotSharingGroupId, Integer> slots) {
        return slots.values().stream().mapToInt(Integer::intValue).sum();
    }

    @Override
    public Optional<VertexParallelism> determineParallelism(
            JobInformation job, Collection<? extends SlotInfo> slots) {
        Map<SlotSharingGroupId, Integer> wanted = widest(job.getVertices());
        if (Placement.current().allowsFewer()) {
            return within(job, wanted, slots.size());
        }
        int needed = calculateRequiredSlots(job.getVertices()).getTotalResourceCount();
        return slots.size() < needed ? Optional.empty() : Optional.of(parallelism(job, wanted));
    }

    /** Slots are given to the groups in turn until there are none left; empty if a vertex gets fewer tasks than it needs. */
    private static Optional<VertexParallelism> within(
            JobInformation job, Map<SlotSharingGroupId, Integer> wanted, int slots) {
        Map<SlotSharingGroupId, Integer> given = new HashMap<>();
        int most = wanted.values().stream().mapToInt(Integer::intValue).max().orElse(0);
        int left = slots;
        for (int round = 1; round <= most; round++) {
            for (Map.Entry<SlotSharingGroupId, Integer> group : wanted.entrySet()) {
                if (group.getValue() >= round && left > 0) {
                    given.put(group.getKey(), round);
                    left--;
                }
            }
        }
        for (JobInformation.VertexInformation vertex : job.getVertices()) {
            int there = given.getOrDefault(vertex.getSlotSharingGroup().getSlotSharingGroupId(), 0);
            if (there < vertex.getMinParallelism()) {
                return Optional.empty();
            }
        }
        return Optional.of(parallelism(job, given));
    }

    private static VertexParallelism parallelism(JobInformation job, Map<SlotSharingGroupId, Integer> slots) {
        Map<JobVertexID, Integer> tasks = new HashMap<>();
        for (JobInformation.VertexInformation vertex : job.getVertices()) {
            int most = slots.get(vertex.getSlotSharingGroup().getSlotSharingGroupId());
            tasks.put(vertex.getJobVertexID(), Math.min(vertex.getParallelism(), most));
        }
        return new VertexParallelism(tasks);
    }

    /** What a placement makes of the slots; without it where it does not fit them and the job may run elsewhere. */
    static <T> T placed(Placement placement, Function<Placement, T> assign) {
        try {
            return assign.apply(placement);
        } catch (IllegalStateException misfit) {
            if (!placement.allowsFewer()) {
                throw misfit;
            }
            return assign.apply(Placement.none());
        }
    }

    /** Tasks of each vertex of a slot sharing group. */
    static Map<JobVertexID, Integer> parallelismIn(SlotSharingGroup group, VertexParallelism tasks) {
        Map<JobVertexID, Integer> found = new LinkedHashMap<>();
        group.getJobVertexIds().forEach(vertex -> found.put(vertex, tasks.getParallelism(vertex)));
        return found;
    }

    static String taskManager(SlotInfo slot) {
        return slot.getTaskManagerLocation().getResourceID().toString();
    }

    @Override
    public Optional<ReservedSlots> tryReserveResources(JobSchedulingPlan plan) {
        for (SlotAssignment assignment : plan.getSlotAssignments()) {
            if (!isFree.isSlotAvailableAndFree(assignment.getSlotInfo().getAllocationId())) {
                return Optional.empty();
            }
        }
        Map<ExecutionVertexID, LogicalSlot> reserved = new HashMap<>();
        for (SlotAssignment assignment : plan.getSlotAssignments()) {
            SharedSlot slot = reserved(assignment.getSlotInfo());
            for (ExecutionVertexID task : tasksIn(assignment)) {
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
