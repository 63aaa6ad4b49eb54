package sluice.source;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;

final class LaneTest {
    @Test
    void aLaneOutlivesACheckpoint() throws IOException {
        Lane.OneSerializer one = new Lane.OneSerializer();
        Lane lane = one.deserialize(1, one.serialize(new Lane(7, 1L << 40)));
        assertEquals(7, lane.number);
        assertEquals(1L << 40, lane.next());
        assertEquals("7", lane.splitId());
    }

    @Test
    void lanesThatWaitOutliveACheckpoint() throws IOException {
        Lane.ListSerializer many = new Lane.ListSerializer();
        List<Lane> lanes = many.deserialize(1, many.serialize(List.of(new Lane(1, 2), new Lane(3, 4))));
        assertEquals(2, lanes.size());
        assertEquals(3, lanes.get(1).number);
        assertEquals(4, lanes.get(1).next());
        assertEquals(List.of(), many.deserialize(1, many.serialize(List.of())));
    }
}
