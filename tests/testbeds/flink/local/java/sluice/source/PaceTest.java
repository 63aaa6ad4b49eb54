package sluice.source;

import java.util.ArrayList;
import java.util.List;

public final class PaceTest {
    private static final long SECOND = 1_000_000_000L;

    public static void main(String[] args) {
        aTaskEmitsItsShareOfTheRate();
        whatWasNotTakenIsPendingUntilTheRateChanges();
        theSameOrderAgainChangesNothing();
        whatArrivesInALogStaysUntilItIsRead();
        tasksTogetherEmitEachEventOnce();
        lanesDealtAnewGoOnWhereTheyWere();
        aShiftSkipsEventsAndCountsNone();
        ordersAreChecked();
    }

    private static void aShiftSkipsEventsAndCountsNone() {
        Pace pace = new Pace(lanes(0, 1), 1);
        pace.follow(Order.parse("rate a 100"), 0);
        assert pace.next(SECOND, 0) == 0 && pace.next(SECOND, 0) == 1;
        pace.follow(Order.parse("rate b 100 5000"), SECOND);
        assert pace.next(2 * SECOND, 0) == 5002;
        assert pace.report(2 * SECOND, 0).equals("b 1.0 1 99 3") : pace.report(2 * SECOND, 0);
        pace.follow(Order.parse("log c 10 0 0 7000"), 2 * SECOND);
        assert pace.next(2 * SECOND, 1000) == 7003;
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

    private static void aTaskEmitsItsShareOfTheRate() {
        Pace pace = new Pace(lanes(0, 4), 4);
        assert emitAll(pace, SECOND, 0) == 0 : "nothing before the first order";
        pace.follow(Order.parse("rate a 1000"), SECOND);
        assert emitAll(pace, SECOND, 0) == 0;
        assert emitAll(pace, 2 * SECOND, 0) == 250;
        assert emitAll(pace, 2 * SECOND + SECOND / 10, 0) == 25;
        assert pace.pending(2 * SECOND + SECOND / 10, 0) == 0;
    }

    private static void whatWasNotTakenIsPendingUntilTheRateChanges() {
        Pace pace = new Pace(lanes(0, 1), 1);
        pace.follow(Order.parse("rate a 100"), 0);
        pace.next(SECOND, 0);
        assert pace.pending(3 * SECOND, 0) == 299;
        pace.follow(Order.parse("rate b 10"), 3 * SECOND);
        assert pace.pending(3 * SECOND, 0) == 0;
        assert emitAll(pace, 4 * SECOND, 0) == 10;
    }

    private static void theSameOrderAgainChangesNothing() {
        Pace pace = new Pace(lanes(0, 1), 1);
        pace.follow(Order.parse("rate a 100"), 0);
        pace.follow(Order.parse("rate a 100"), SECOND);
        assert emitAll(pace, 2 * SECOND, 0) == 200;
        assert pace.report(2 * SECOND, 0).equals("a 2.0 200 0 200") : pace.report(2 * SECOND, 0);
    }

    private static void whatArrivesInALogStaysUntilItIsRead() {
        Pace pace = new Pace(lanes(0, 1), 1);
        pace.follow(Order.parse("log a 100 50 1000"), 0);
        assert pace.pending(0, 1000) == 50;
        assert emitAll(pace, 0, 1000) == 50;
        assert emitAll(pace, 0, 3000) == 200;
        pace.follow(Order.parse("log b 0 500 4000"), 0);
        assert emitAll(pace, 0, 9000) == 250 : "what came at the old rate is owed at the new one";
    }

    private static void tasksTogetherEmitEachEventOnce() {
        boolean[] seen = new boolean[3 * Lanes.COUNT];
        for (int subtask = 0; subtask < 3; subtask++) {
            Pace pace = new Pace(lanes(subtask, 3), 3);
            pace.follow(Order.parse("log a 0 " + seen.length + " 0"), 0);
            for (long i = pace.next(0, 0); i != Pace.NOTHING_DUE; i = pace.next(0, 0)) {
                assert !seen[(int) i];
                seen[(int) i] = true;
            }
        }
        for (boolean one : seen) {
            assert one;
        }
    }

    private static void lanesDealtAnewGoOnWhereTheyWere() {
        Lanes before = lanes(0, 1);
        for (int i = 0; i < 1000; i++) {
            assert before.take() == i;
        }
        Lanes after = new Lanes();
        after.add(before.snapshot());
        assert after.take() == 1000;
        assert after.lag(1001) == 0 && after.lag(2001) == 1000;
    }

    private static void ordersAreChecked() {
        for (String wrong : new String[] {"rate a", "rate a -1", "stop", "log a 1 2", "rate a fast", "rate a NaN"}) {
            try {
                Order.parse(wrong);
            } catch (IllegalArgumentException expected) {
                continue;
            }
            throw new AssertionError("'" + wrong + "' was taken");
        }
    }
}
