package sluice.source;

import java.io.IOException;
import java.util.List;

public final class LaneTest {
    public static void main(String[] args) throws IOException {
        Lane lane = new Lane.OneSerializer().deserialize(1, new Lane.OneSerializer().serialize(new Lane(7, 1L << 40)));
        assert lane.number == 7 && lane.next() == 1L << 40 && lane.splitId().equals("7");
        Lane.ListSerializer many = new Lane.ListSerializer();
        List<Lane> lanes = many.deserialize(1, many.serialize(List.of(new Lane(1, 2), new Lane(3, 4))));
        assert lanes.size() == 2 && lanes.get(1).number == 3 && lanes.get(1).next() == 4;
        assert many.deserialize(1, many.serialize(List.of())).isEmpty();
    }
}
