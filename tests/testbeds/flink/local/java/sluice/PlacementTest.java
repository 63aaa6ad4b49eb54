package sluice;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;
import org.junit.jupiter.api.Test;

final class PlacementTest {
    private static final JobVertexID MAP = new JobVertexID();
    private static final JobVertexID SINK = new JobVertexID();

    private final Placement placement =
            Placement.parse(List.of("slots 8", MAP + " 0 tm1", MAP + " 1 tm2", SINK + " 1 tm1"));

    private static ExecutionVertexID task(JobVertexID vertex, int subtask) {
        return new ExecutionVertexID(vertex, subtask);
    }

    /** Slots are written as TASKMANAGER/NUMBER. */
    private static Map<List<ExecutionVertexID>, String> assigned(
            Placement placement, List<List<ExecutionVertexID>> groups, String... slots) {
        return placement.assigned(groups, Function.identity(), List.of(slots), slot -> slot.split("/")[0]);
    }

    @Test
    void theFileGivesTheSlotsOfTheClusterAndTheTaskManagerOfEachTask() {
        assertEquals(8, placement.clusterSlots());
        assertEquals(Optional.of("tm2"), placement.workerOf(List.of(task(MAP, 1))));
        assertEquals(Optional.empty(), placement.workerOf(List.of(task(SINK, 0))));
        assertEquals(Optional.of("tm1"), placement.workerOf(List.of(task(SINK, 0), task(MAP, 0))));
    }

    @Test
    void tasksOfOneSlotAreOnOneTaskManager() {
        List<ExecutionVertexID> shared = List.of(task(MAP, 1), task(SINK, 1));
        String message = assertThrows(IllegalStateException.class, () -> placement.workerOf(shared)).getMessage();
        assertTrue(message.contains("tm2 and on tm1"), message);
    }

    @Test
    void aLineOfAnotherFormIsRefused() {
        for (String wrong : List.of("tm1", "slots 1 2", "slots 1 2 3", "slot 8", MAP + " 0 tm1 0 0")) {
            String message = assertThrows(
                    IllegalArgumentException.class, () -> Placement.parse(List.of(wrong))).getMessage();
            assertTrue(message.contains("slots N") && message.contains(wrong), message);
        }
        assertThrows(NumberFormatException.class, () -> Placement.parse(List.of("slots many")));
        assertThrows(NumberFormatException.class, () -> Placement.parse(List.of(MAP + " first tm1")));
        assertThrows(NumberFormatException.class, () -> Placement.parse(List.of(MAP + " 0 tm1 first")));
    }

    @Test
    void withoutAFileThereIsNoPlacement() {
        assertEquals(0, Placement.current().clusterSlots());
        assertTrue(Placement.current().isEmpty());
    }

    @Test
    void aJobWaitsForMissingSlotsUnlessTheFileAllowsFewerTasks() {
        assertFalse(placement.allowsFewer());
        Placement yielding = Placement.parse(List.of("slots 8", "fewer", MAP + " 0 tm1"));
        assertTrue(yielding.allowsFewer());
        assertEquals(Optional.of("tm1"), yielding.workerOf(List.of(task(MAP, 0))));
    }

    @Test
    void tasksThatAreNamedTakeTheirSlotsBeforeOthers() {
        List<List<ExecutionVertexID>> groups =
                List.of(List.of(task(SINK, 0)), List.of(task(MAP, 1)), List.of(task(MAP, 0), task(SINK, 2)));
        Map<List<ExecutionVertexID>, String> found = assigned(placement, groups, "tm2/0", "tm1/0", "tm1/1");
        assertEquals(Map.of(groups.get(0), "tm1/1", groups.get(1), "tm2/0", groups.get(2), "tm1/0"), found);
    }

    @Test
    void withoutAPlacementSlotsAreTakenInTheirOrder() {
        List<List<ExecutionVertexID>> groups = List.of(List.of(task(MAP, 1)), List.of(task(MAP, 0)));
        Map<List<ExecutionVertexID>, String> found = assigned(Placement.parse(List.of()), groups, "tm1/0", "tm2/0");
        assertEquals(Map.of(groups.get(0), "tm1/0", groups.get(1), "tm2/0"), found);
    }

    /** Vertices in this order. */
    private static Map<JobVertexID, Integer> parallelism(int maps, int sinks) {
        Map<JobVertexID, Integer> found = new LinkedHashMap<>();
        found.put(MAP, maps);
        found.put(SINK, sinks);
        return found;
    }

    @Test
    void whereNoTaskNamesASlotSlotIHoldsSubtaskIOfEachVertex() {
        assertEquals(List.of(List.of(task(MAP, 0), task(SINK, 0)), List.of(task(MAP, 1), task(SINK, 1)),
                List.of(task(MAP, 2))), placement.sharing(parallelism(3, 2)));
    }

    @Test
    void tasksThatNameTheSameSlotOfATaskManagerShareIt() {
        Placement mixed = Placement.parse(List.of(
                MAP + " 0 tm1 0", MAP + " 1 tm1 1", MAP + " 2 tm2 1", SINK + " 0 tm1 1", SINK + " 1 tm2 0"));
        assertEquals(List.of(List.of(task(MAP, 0)), List.of(task(MAP, 1), task(SINK, 0)), List.of(task(MAP, 2)),
                List.of(task(SINK, 1))), mixed.sharing(parallelism(3, 2)));
    }

    @Test
    void aTaskThatNamesNoSlotJoinsOneThatMayHoldIt() {
        List<String> lines = List.of(MAP + " 0 tm1 0", MAP + " 1 tm2 0", SINK + " 0 tm1 0");
        Placement mixed = Placement.parse(lines);
        assertEquals(List.of(List.of(task(MAP, 0), task(SINK, 0)), List.of(task(MAP, 1), task(SINK, 1)),
                List.of(task(SINK, 2))), mixed.sharing(parallelism(2, 3)));
        List<String> elsewhere = new ArrayList<>(lines);
        elsewhere.add(SINK + " 1 tm1");
        assertEquals(List.of(List.of(task(MAP, 0), task(SINK, 0)), List.of(task(MAP, 1)), List.of(task(SINK, 1))),
                Placement.parse(elsewhere).sharing(parallelism(2, 2)));
    }

    @Test
    void aSlotHoldsOneTaskOfEachVertex() {
        Placement wrong = Placement.parse(List.of(MAP + " 0 tm1 0", MAP + " 1 tm1 0"));
        String message =
                assertThrows(IllegalStateException.class, () -> wrong.sharing(parallelism(2, 1))).getMessage();
        assertTrue(message.contains(MAP + "_1 and another task of its vertex into tm1/0"), message);
    }

    @Test
    void tooFewSlotsForTasksThatAreNotNamedAreReported() {
        List<List<ExecutionVertexID>> groups = List.of(List.of(task(SINK, 0)), List.of(task(MAP, 0)));
        String message = assertThrows(
                IllegalStateException.class, () -> assigned(placement, groups, "tm1/0")).getMessage();
        assertTrue(message.contains("leaves 0 slots for 1 groups"), message);
    }

    @Test
    void aTaskManagerWithoutASlotForItsTasksIsReported() {
        List<List<ExecutionVertexID>> groups = List.of(List.of(task(MAP, 0)), List.of(task(SINK, 1)));
        String message = assertThrows(
                IllegalStateException.class, () -> assigned(placement, groups, "tm1/0", "tm2/0")).getMessage();
        assertTrue(message.contains("TaskManager tm1, which has no slot left"), message);
    }
}
