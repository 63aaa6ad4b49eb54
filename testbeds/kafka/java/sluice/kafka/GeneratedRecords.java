package sluice.kafka;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.apache.kafka.clients.producer.ProducerRecord;
import sluice.source.Mixer;

/**
 * Records whose values are JSON, as in {@code {"id":17,"key":"k4","at":1700000000000,"padding":"xxx"}}, filled up to a length.
 * Keys are drawn from a Zipf law; exponent 0 draws them evenly. Without keys, records go to the partitions in turn.
 */
final class GeneratedRecords implements Records {
    private static final byte[] ID = ascii("{\"id\":");
    private static final byte[] KEY = ascii(",\"key\":\"");
    private static final byte[] AT_OF_KEYED = ascii("\",\"at\":");
    private static final byte[] AT = ascii(",\"at\":");
    private static final byte[] PADDING = ascii(",\"padding\":\"");
    private static final byte[] END = ascii("\"}");
    private static final int LONGEST_NUMBER = 20;

    private final String topic;
    private final int partitions;
    private final double[] upTo;
    private final long seed;
    private final Mixer random = new Mixer();
    private final byte[] scratch;
    private final int valueBytes;
    private int length;

    /**
     * @param keys number of keys; 0: none
     * @param exponent of the Zipf law
     * @param valueBytes least length of a value
     */
    GeneratedRecords(String topic, int partitions, int keys, double exponent, int valueBytes, long seed) {
        this.topic = topic;
        this.partitions = partitions;
        this.seed = seed;
        this.valueBytes = valueBytes;
        upTo = sharesUpTo(keys, exponent);
        scratch = new byte[valueBytes + 3 * LONGEST_NUMBER + 64];
    }

    @Override
    public ProducerRecord<byte[], byte[]> at(long index, long nowMs) {
        length = 0;
        write(ID);
        write(index);
        byte[] key = null;
        if (upTo.length > 0) {
            random.reset(seed, index);
            write(KEY);
            int start = length;
            scratch[length++] = 'k';
            write(drawn(random.nextDouble()));
            key = Arrays.copyOfRange(scratch, start, length);
            write(AT_OF_KEYED);
        } else {
            write(AT);
        }
        write(nowMs);
        write(PADDING);
        int end = valueBytes - END.length;
        if (end > length) {
            Arrays.fill(scratch, length, end, (byte) 'x');
            length = end;
        }
        write(END);
        Integer partition = key == null ? Integer.valueOf((int) (index % partitions)) : null;
        return new ProducerRecord<>(topic, partition, nowMs, key, Arrays.copyOf(scratch, length));
    }

    /** The key whose interval of [0, 1) holds a number. */
    private int drawn(double number) {
        int found = Arrays.binarySearch(upTo, number);
        return Math.min(found >= 0 ? found + 1 : -found - 1, upTo.length - 1);
    }

    /** Share of keys 0 to i together, for each key i. */
    static double[] sharesUpTo(int keys, double exponent) {
        double[] upTo = new double[keys];
        double sum = 0;
        for (int key = 0; key < keys; key++) {
            sum += Math.pow(key + 1, -exponent);
            upTo[key] = sum;
        }
        for (int key = 0; key < keys; key++) {
            upTo[key] /= sum;
        }
        return upTo;
    }

    private void write(byte[] bytes) {
        System.arraycopy(bytes, 0, scratch, length, bytes.length);
        length += bytes.length;
    }

    private void write(long number) {
        int digits = 1;
        for (long rest = number / 10; rest > 0; rest /= 10) {
            digits++;
        }
        long rest = number;
        for (int place = length + digits - 1; place >= length; place--) {
            scratch[place] = (byte) ('0' + rest % 10);
            rest /= 10;
        }
        length += digits;
    }

    private static byte[] ascii(String text) {
        return text.getBytes(StandardCharsets.US_ASCII);
    }
}
