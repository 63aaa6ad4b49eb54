package sluice.dataflow;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

final class PacketTest {
    @Test
    void aRecordIsAsLongAsAskedWhereItsFrameLeavesRoom() {
        assertEquals(83, Packet.filling(100).length);
        assertEquals(0, Packet.filling(5).length);
    }

    @Test
    void recordsOfAnEventDifferAndNameIt() {
        Set<Long> numbers = new HashSet<>();
        for (long copy = 0; copy < 20; copy++) {
            long number = Packet.copied(Packet.first(1_000_000_007L), copy);
            assertEquals(1_000_000_007L, Packet.event(number));
            numbers.add(number);
        }
        assertEquals(20, numbers.size());
    }

    @Test
    void keysAreSpreadAsAsked() {
        Spec.Keys keys = new Spec.Keys();
        keys.distinct = 50;
        keys.hot_share = 0.5;
        keys.hot_period_events = 100_000;
        Map<Long, Integer> counts = new HashMap<>();
        for (long event = 0; event < 100_000; event++) {
            counts.merge(Packet.key(Packet.first(event), keys), 1, Integer::sum);
        }
        assertEquals(50, counts.size());
        long hot = counts.values().stream().filter(count -> count > 40_000).count();
        assertEquals(1, hot, "one key has half of the records");
        long even = counts.values().stream().filter(count -> count > 800 && count < 1200).count();
        assertEquals(49, even, () -> "the others have a thousand each: " + counts);
        keys.seed = 7;
        Map<Long, Integer> others = firstThousand(keys);
        keys.seed = 0;
        assertNotEquals(others, firstThousand(keys), "another seed, other keys");
        keys.hot_share = 0;
        keys.lifetime_events = 1000;
        assertTrue(Packet.key(Packet.first(5000), keys) >= 250, "five lifetimes later the keys are others");
    }

    private static Map<Long, Integer> firstThousand(Spec.Keys keys) {
        Map<Long, Integer> counts = new HashMap<>();
        for (long event = 0; event < 1000; event++) {
            counts.merge(Packet.key(Packet.first(event), keys), 1, Integer::sum);
        }
        return counts;
    }
}
