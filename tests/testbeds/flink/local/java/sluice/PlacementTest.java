package sluice;

import java.util.List;
import java.util.Optional;
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;

public final class PlacementTest {
    public static void main(String[] args) {
        JobVertexID map = new JobVertexID();
        JobVertexID sink = new JobVertexID();
        Placement placement = Placement.parse(List.of("slots 8", map + " 0 tm1", map + " 1 tm2", sink + " 1 tm1"));
        assert placement.clusterSlots() == 8;
        assert placement.workerOf(List.of(new ExecutionVertexID(map, 1))).equals(Optional.of("tm2"));
        assert placement.workerOf(List.of(new ExecutionVertexID(sink, 0))).isEmpty();
        assert placement.workerOf(List.of(new ExecutionVertexID(sink, 0), new ExecutionVertexID(map, 0)))
                .equals(Optional.of("tm1"));
        try {
            placement.workerOf(List.of(new ExecutionVertexID(map, 1), new ExecutionVertexID(sink, 1)));
            throw new AssertionError("one slot on two TaskManagers");
        } catch (IllegalStateException expected) {
            assert expected.getMessage().contains("tm2 and on tm1") : expected.getMessage();
        }
        try {
            Placement.parse(List.of("tm1"));
            throw new AssertionError("no placement was taken");
        } catch (IllegalArgumentException expected) {
            assert expected.getMessage().contains("slots N");
        }
        assert Placement.current().clusterSlots() == 0 : "no file, no placement";
    }
}
