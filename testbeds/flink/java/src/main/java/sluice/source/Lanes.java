package sluice.source;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * The part of the event sequence that one task emits. Event i belongs to lane i mod COUNT, as a record belongs to a
 * partition of a durable log; lanes are reassigned when the number of tasks changes, so no event is lost or repeated.
 */
public final class Lanes {
    /** Divisible by every number up to 8 and many above, so that tasks mostly get equal numbers of lanes. */
    public static final int COUNT = 840;

    private final List<Lane> lanes = new ArrayList<>();
    private int cursor;

    public void add(List<Lane> more) {
        for (Lane lane : more) {
            lanes.add(lane.copy());
        }
        lanes.sort(Comparator.comparingLong(lane -> lane.next));
        cursor = 0;
    }

    public boolean isEmpty() {
        return lanes.isEmpty();
    }

    /** Events of these lanes before number {@code arrived} that are not taken yet. */
    public long lag(long arrived) {
        long lag = 0;
        for (Lane lane : lanes) {
            lag += Math.max(0, Math.floorDiv(arrived - lane.next + COUNT - 1, COUNT));
        }
        return lag;
    }

    /** The number of the next event, lane by lane in turn. */
    public long take() {
        Lane lane = lanes.get(cursor);
        cursor = cursor + 1 == lanes.size() ? 0 : cursor + 1;
        long index = lane.next;
        lane.next += COUNT;
        return index;
    }

    /** The next event before number {@code arrived}; there must be lag. */
    public long take(long arrived) {
        while (lanes.get(cursor).next >= arrived) {
            cursor = cursor + 1 == lanes.size() ? 0 : cursor + 1;
        }
        return take();
    }

    public List<Lane> snapshot() {
        List<Lane> copies = new ArrayList<>(lanes.size());
        for (Lane lane : lanes) {
            copies.add(lane.copy());
        }
        return copies;
    }
}
