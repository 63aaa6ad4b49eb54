package sluice.dataflow;

import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import sluice.source.Mixer;

/**
 * Records of a dataflow: a number and padding. The upper 44 bits of the number are the source's event from which the record
 * comes, the lower 20 distinguish the records of one event.
 */
final class Packet {
    static final TypeInformation<Tuple2<Long, byte[]>> TYPE =
            Types.TUPLE(Types.LONG, Types.PRIMITIVE_ARRAY(Types.BYTE));

    private static final int LOW_BITS = 20;
    private static final long LOW = (1L << LOW_BITS) - 1;
    /** Bytes of a record on the wire besides its padding: lengths of record and array, kind of element, number. */
    private static final int FRAME_BYTES = 17;

    private Packet() {}

    static byte[] filling(int bytes) {
        return new byte[Math.max(0, bytes - FRAME_BYTES)];
    }

    static long first(long event) {
        return event << LOW_BITS;
    }

    static long event(long number) {
        return number >>> LOW_BITS;
    }

    /** Number of the {@code copy}-th record made from the record {@code number}. */
    static long copied(long number, long copy) {
        return (number & ~LOW) | (copy == 0 ? number & LOW : Mixer.mixed(number + copy) & LOW);
    }

    /** The key of a record for an operator with this key distribution. */
    static long key(long number, Spec.Keys keys) {
        long bits = Mixer.mixed(number ^ Mixer.mixed(keys.seed + 1));
        double share = (bits >>> 11) * 0x1.0p-53;
        long event = event(number);
        long age = keys.lifetime_events > 0 ? (long) (event / keys.lifetime_events * keys.distinct) : 0;
        if (share < keys.hot_share) {
            return age + Math.floorMod(Mixer.mixed((long) (event / keys.hot_period_events)), keys.distinct);
        }
        return age + Math.floorMod(Mixer.mixed(bits), keys.distinct);
    }
}
