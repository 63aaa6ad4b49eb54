package sluice.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.Map;
import org.apache.flink.table.data.RowData;
import org.junit.jupiter.api.Test;

/** Shares and keys of the Nexmark generator (https://github.com/nexmark/nexmark, GeneratorConfig). */
final class NexmarkEventsTest {
    private static final int EVENTS = 500_000;

    @Test
    void sharesKeysAndSizesAreThoseOfTheBenchmark() {
        NexmarkEvents events = new NexmarkEvents(1);
        events.open();
        int[] counts = new int[3];
        long[] bytes = new long[3];
        int hotAuctions = 0;
        int hotBidders = 0;
        int hotSellers = 0;
        for (int i = 0; i < EVENTS; i++) {
            RowData event = events.at(i, 1000 + i);
            int type = event.getInt(0);
            counts[type]++;
            for (int column = 1; column < 4; column++) {
                assertEquals((column != type + 1), event.isNullAt(column));
            }
            assertEquals(1000 + i, event.getTimestamp(4, 3).getMillisecond());
            if (type == NexmarkEvents.PERSON) {
                RowData person = event.getRow(1, 8);
                assertEquals(1000 + i / 50, person.getLong(0));
                bytes[type] += 16 + size(person, 1) + size(person, 2) + size(person, 3) + size(person, 4)
                        + size(person, 5) + size(person, 7);
            } else if (type == NexmarkEvents.AUCTION) {
                RowData auction = event.getRow(2, 10);
                assertEquals(1000 + i / 50 * 3 + i % 50 - 1, auction.getLong(0));
                assertTrue(auction.getLong(8) >= 10);
                assertTrue(auction.getLong(8) < 15);
                assertTrue(auction.getTimestamp(6, 3).getMillisecond() > 1000 + i);
                hotSellers += auction.getLong(7) == 1000 + i / 50 / 100 * 100 ? 1 : 0;
                bytes[type] += 56 + size(auction, 1) + size(auction, 2) + size(auction, 9);
            } else {
                RowData bid = event.getRow(3, 5);
                long last = i / 50 * 3 + 2;
                assertTrue(bid.getLong(0) >= 1000 + Math.max(0, last - 100) / 100 * 100);
                assertTrue(bid.getLong(0) <= 1000 + last + 10);
                hotAuctions += bid.getLong(0) == 1000 + last / 100 * 100 ? 1 : 0;
                hotBidders += bid.getLong(1) == 1000 + i / 50 / 100 * 100 + 1 ? 1 : 0;
                bytes[type] += 32 + size(bid, 4);
            }
        }
        assertEquals(EVENTS / 50, counts[0]);
        assertEquals(EVENTS / 50 * 3, counts[1]);
        assertEquals(EVENTS / 50 * 46, counts[2]);
        near(0.5, hotAuctions / (double) counts[2], 0.01);
        near(0.75, hotBidders / (double) counts[2], 0.01);
        near(0.75, hotSellers / (double) counts[1], 0.01);
        near(200, bytes[0] / (double) counts[0], 5);
        near(500, bytes[1] / (double) counts[1], 5);
        near(100, bytes[2] / (double) counts[2], 5);
    }

    @Test
    void theSameSeedRepeatsTheSameEvents() {
        NexmarkEvents one = new NexmarkEvents(7);
        NexmarkEvents other = new NexmarkEvents(7);
        NexmarkEvents different = new NexmarkEvents(8);
        one.open();
        other.open();
        different.open();
        one.at(5, 0);
        assertEquals(other.at(123_456, 9), one.at(123_456, 9), "whatever came before");
        assertNotEquals(different.at(123_456, 9), one.at(123_456, 9));
    }

    @Test
    void statesAreSpreadEvenly() {
        NexmarkEvents events = new NexmarkEvents(1);
        events.open();
        Map<String, Integer> states = new HashMap<>();
        for (int person = 0; person < 6000; person++) {
            states.merge(events.at(50L * person, 0).getRow(1, 8).getString(5).toString(), 1, Integer::sum);
        }
        assertEquals(6, states.size());
        for (int count : states.values()) {
            near(1000, count, 120);
        }
    }

    private static int size(RowData row, int column) {
        return row.getString(column).toBytes().length;
    }

    private static void near(double expected, double got, double tolerance) {
        assertEquals(expected, got, tolerance);
    }
}
