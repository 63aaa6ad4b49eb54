package sluice.source;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class PaceTest {
    private static final long SECOND = 1_000_000_000L;

    @Test
    void aShiftSkipsEventsAndCountsNone() {
        Pace pace = new Pace(lanes(0, 1), 1);
        pace.follow(Order.parse("rate a 100"), 0);
        assertEquals(0, pace.next(SECOND, 0));
        assertEquals(1, pace.next(SECOND, 0));
        pace.follow(Order.parse("rate b 100 5000"), SECOND);
        assertEquals(5002, pace.next(2 * SECOND, 0));
        assertEquals("b 1.0 1 99 3", pace.report(2 * SECOND, 0));
        pace.follow(Order.parse("log c 10 0 0 7000"), 2 * SECOND);
        assertEquals(7003, pace.next(2 * SECOND, 1000));
    }

    private static Lanes lanes(int subtask, int tasks) {
        List<Lane> mine = new ArrayList<>();
        for (int number = subtask; number < Lanes.COUNT; number += tasks) {
            mine.add(new Lane(number, number));
        }
        Lanes lanes = new Lanes();
        lanes.add(mine);
        return lanes;
    }

    private static long emitAll(Pace pace, long nanos, double ms) {
        long count = 0;
        while (pace.next(nanos, ms) != Pace.NOTHING_DUE) {
            count++;
        }
        return count;
    }

    @Test
    void aTaskEmitsItsShareOfTheRate() {
        Pace pace = new Pace(lanes(0, 4), 4);
        assertEquals(0, emitAll(pace, SECOND, 0), "nothing before the first order");
        pace.follow(Order.parse("rate a 1000"), SECOND);
        assertEquals(0, emitAll(pace, SECOND, 0));
        assertEquals(250, emitAll(pace, 2 * SECOND, 0));
        assertEquals(25, emitAll(pace, 2 * SECOND + SECOND / 10, 0));
        assertEquals(0, pace.pending(2 * SECOND + SECOND / 10, 0));
    }

    @Test
    void whatWasNotTakenIsPendingUntilTheRateChanges() {
        Pace pace = new Pace(lanes(0, 1), 1);
        pace.follow(Order.parse("rate a 100"), 0);
        pace.next(SECOND, 0);
        assertEquals(299, pace.pending(3 * SECOND, 0));
        pace.follow(Order.parse("rate b 10"), 3 * SECOND);
        assertEquals(0, pace.pending(3 * SECOND, 0));
        assertEquals(10, emitAll(pace, 4 * SECOND, 0));
    }

    @Test
    void theSameOrderAgainChangesNothing() {
        Pace pace = new Pace(lanes(0, 1), 1);
        pace.follow(Order.parse("rate a 100"), 0);
        pace.follow(Order.parse("rate a 100"), SECOND);
        assertEquals(200, emitAll(pace, 2 * SECOND, 0));
        assertEquals("a 2.0 200 0 200", pace.report(2 * SECOND, 0));
    }

    @Test
    void whatArrivesInALogStaysUntilItIsRead() {
        Pace pace = new Pace(lanes(0, 1), 1);
        pace.follow(Order.parse("log a 100 50 1000"), 0);
        assertEquals(50, pace.pending(0, 1000));
        assertEquals(50, emitAll(pace, 0, 1000));
        assertEquals(200, emitAll(pace, 0, 3000));
        pace.follow(Order.parse("log b 0 500 4000"), 0);
        assertEquals(250, emitAll(pace, 0, 9000), "what came at the old rate is owed at the new one");
    }

    @Test
    void tasksTogetherEmitEachEventOnce() {
        boolean[] seen = new boolean[3 * Lanes.COUNT];
        for (int subtask = 0; subtask < 3; subtask++) {
            Pace pace = new Pace(lanes(subtask, 3), 3);
            pace.follow(Order.parse("log a 0 " + seen.length + " 0"), 0);
            for (long i = pace.next(0, 0); i != Pace.NOTHING_DUE; i = pace.next(0, 0)) {
                assertFalse(seen[(int) i]);
                seen[(int) i] = true;
            }
        }
        for (boolean one : seen) {
            assertTrue(one);
        }
    }

    @Test
    void lanesThatAreReassignedContinueWhereTheyWere() {
        Lanes before = lanes(0, 1);
        for (int i = 0; i < 1000; i++) {
            assertEquals(i, before.take());
        }
        Lanes after = new Lanes();
        after.add(before.snapshot());
        assertEquals(1000, after.take());
        assertEquals(0, after.lag(1001));
        assertEquals(1000, after.lag(2001));
    }

    @Test
    void ordersAreChecked() {
        for (String wrong : new String[] {"rate a", "rate a -1", "stop", "log a 1 2", "rate a fast", "rate a NaN"}) {
            assertThrows(IllegalArgumentException.class, () -> Order.parse(wrong), wrong);
        }
    }
}
