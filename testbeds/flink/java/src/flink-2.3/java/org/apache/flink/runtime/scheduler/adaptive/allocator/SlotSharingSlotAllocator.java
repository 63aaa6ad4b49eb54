package org.apache.flink.runtime.scheduler.adaptive.allocator;

import java.util.Collection;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import org.apache.flink.configuration.TaskManagerOptions.TaskManagerLoadBalanceMode;
import org.apache.flink.runtime.clusterframework.types.ResourceProfile;
import org.apache.flink.runtime.jobmanager.scheduler.SlotSharingGroup;
import org.apache.flink.runtime.jobmaster.slotpool.PhysicalSlot;
import org.apache.flink.runtime.scheduler.adaptive.JobSchedulingPlan;
import org.apache.flink.runtime.scheduler.adaptive.JobSchedulingPlan.SlotAssignment;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import org.apache.flink.runtime.scheduler.taskexecload.DefaultTaskExecutionLoad;
import org.apache.flink.runtime.scheduler.taskexecload.HasTaskExecutionLoad;
import org.apache.flink.runtime.scheduler.taskexecload.TaskExecutionLoad;
import sluice.Placement;

/**
 * Replaces the class of this name in Flink 2.3; see {@link PlacingSlotAllocator}. Without a placement, tasks share slots and
 * take them as Flink's own resolvers for {@code taskmanager.load-balance.mode} say.
 */
public class SlotSharingSlotAllocator extends PlacingSlotAllocator {
    private final SlotSharingResolver unplacedSharing;
    private final SlotMatchingResolver unplacedMatching;

    private SlotSharingSlotAllocator(ReserveSlotFunction reserve, FreeSlotFunction free,
            IsSlotAvailableAndFreeFunction isFree, TaskManagerLoadBalanceMode mode) {
        super(reserve, free, isFree);
        boolean tasksBalanced = mode == TaskManagerLoadBalanceMode.TASKS;
        unplacedSharing = tasksBalanced ? TaskBalancedSlotSharingResolver.INSTANCE : DefaultSlotSharingResolver.INSTANCE;
        unplacedMatching = tasksBalanced ? TasksBalancedSlotMatchingResolver.INSTANCE
                : mode == TaskManagerLoadBalanceMode.SLOTS ? SlotsBalancedSlotMatchingResolver.INSTANCE
                : SimpleSlotMatchingResolver.INSTANCE;
    }

    /** Called by the adaptive scheduler; local recovery, target and preference for few TaskManagers have no meaning here. */
    public static SlotSharingSlotAllocator createSlotSharingSlotAllocator(
            ReserveSlotFunction reserve,
            FreeSlotFunction free,
            IsSlotAvailableAndFreeFunction isFree,
            boolean localRecoveryEnabled,
            String executionTarget,
            boolean minimalTaskManagerPreferred,
            TaskManagerLoadBalanceMode mode) {
        return new SlotSharingSlotAllocator(reserve, free, isFree, mode);
    }

    @Override
    Collection<ExecutionVertexID> tasksIn(SlotAssignment assignment) {
        return assignment.getTargetAs(ExecutionSlotSharingGroup.class).getContainedExecutionVertices();
    }

    @Override
    public Optional<JobSchedulingPlan> determineParallelismAndCalculateAssignment(
            JobInformation job, Collection<PhysicalSlot> slots, JobAllocationsInformation previous) {
        return determineParallelism(job, slots)
                .map(tasks -> new JobSchedulingPlan(tasks,
                        placed(Placement.current(), placement -> assigned(placement, job, tasks, slots))));
    }

    private Collection<SlotAssignment> assigned(
            Placement placement, JobInformation job, VertexParallelism tasks, Collection<PhysicalSlot> slots) {
        SlotSharingResolver sharing = placement.isEmpty() ? unplacedSharing : new PlacedSlotSharingResolver(placement);
        SlotMatchingResolver matching = placement.isEmpty() ? unplacedMatching : new PlacedSlotMatchingResolver(placement);
        return matching.matchSlotSharingGroupWithSlots(sharing.getExecutionSlotSharingGroups(job, tasks), slots);
    }

    /** Tasks that share a slot. Flink's resolvers and its history of rescales expect a class of this name and form. */
    public static class ExecutionSlotSharingGroup implements HasTaskExecutionLoad {
        private final String id;
        private final SlotSharingGroup group;
        private final Set<ExecutionVertexID> tasks;

        public ExecutionSlotSharingGroup(SlotSharingGroup group, Set<ExecutionVertexID> tasks) {
            this(UUID.randomUUID().toString(), group, tasks);
        }

        public ExecutionSlotSharingGroup(String id, SlotSharingGroup group, Set<ExecutionVertexID> tasks) {
            this.id = id;
            this.group = group;
            this.tasks = tasks;
        }

        public String getId() {
            return id;
        }

        public SlotSharingGroup getSlotSharingGroup() {
            return group;
        }

        public ResourceProfile getResourceProfile() {
            return group.getResourceProfile();
        }

        public Collection<ExecutionVertexID> getContainedExecutionVertices() {
            return tasks;
        }

        @Override
        public TaskExecutionLoad getTaskExecutionLoad() {
            return new DefaultTaskExecutionLoad(tasks.size());
        }
    }
}
