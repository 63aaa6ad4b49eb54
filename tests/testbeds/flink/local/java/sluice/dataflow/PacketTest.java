package sluice.dataflow;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

public final class PacketTest {
    public static void main(String[] args) {
        recordsOfAnEventAreToldApartAndKnowIt();
        keysAreSpreadAsAsked();
        assert Packet.filling(100).length == 83 && Packet.filling(5).length == 0;
    }

    private static void recordsOfAnEventAreToldApartAndKnowIt() {
        Set<Long> numbers = new HashSet<>();
        for (long copy = 0; copy < 20; copy++) {
            long number = Packet.copied(Packet.first(1_000_000_007L), copy);
            assert Packet.event(number) == 1_000_000_007L;
            numbers.add(number);
        }
        assert numbers.size() == 20;
    }

    private static void keysAreSpreadAsAsked() {
        Spec.Keys keys = new Spec.Keys();
        keys.distinct = 50;
        keys.hot_share = 0.5;
        keys.hot_period_events = 100_000;
        Map<Long, Integer> counts = new HashMap<>();
        for (long event = 0; event < 100_000; event++) {
            counts.merge(Packet.key(Packet.first(event), keys), 1, Integer::sum);
        }
        assert counts.size() == 50;
        long hot = counts.values().stream().filter(count -> count > 40_000).count();
        assert hot == 1 : "one key has half of the records";
        long even = counts.values().stream().filter(count -> count > 800 && count < 1200).count();
        assert even == 49 : "the others have a thousand each: " + counts;
        keys.seed = 7;
        Map<Long, Integer> others = firstThousand(keys);
        keys.seed = 0;
        assert !others.equals(firstThousand(keys)) : "another seed, other keys";
        keys.hot_share = 0;
        keys.lifetime_events = 1000;
        assert Packet.key(Packet.first(5000), keys) >= 250 : "five lifetimes later the keys are others";
    }

    private static Map<Long, Integer> firstThousand(Spec.Keys keys) {
        Map<Long, Integer> counts = new HashMap<>();
        for (long event = 0; event < 1000; event++) {
            counts.merge(Packet.key(Packet.first(event), keys), 1, Integer::sum);
        }
        return counts;
    }
}
