package sluice.source;

/**
 * An order to the sources, one line of the control connection.
 *
 * <p>{@code rate ID RECORDS_PER_S}: offer these records/s from the arrival of the line on. Records not taken at one rate are
 * dropped at the next.
 *
 * <p>{@code log ID RECORDS_PER_S ARRIVED AT_MS}: records arrive in a durable log, which held {@code ARRIVED} records at the
 * epoch millisecond {@code AT_MS}; unread records stay there, across rates and restarts.
 *
 * <p>Rates and counts are those of all tasks of the source together. Either may end with a {@code SHIFT}: event i of the
 * sequence is then emitted as event i + SHIFT, which brings a source that has dropped events to where the others are.
 */
public final class Order {
    public final boolean log;
    public final String id;
    public final double recordsPerSecond;
    public final double arrived;
    public final long atMs;
    public final long shift;

    private Order(boolean log, String id, double recordsPerSecond, double arrived, long atMs, long shift) {
        if (!(recordsPerSecond >= 0 && recordsPerSecond < Double.POSITIVE_INFINITY)) {
            throw new IllegalArgumentException("a rate must be 0 or more records/s, but got " + recordsPerSecond);
        }
        this.log = log;
        this.id = id;
        this.recordsPerSecond = recordsPerSecond;
        this.arrived = arrived;
        this.atMs = atMs;
        this.shift = shift;
    }

    /** No records: in force until the first line arrives, and while the connection is down. */
    public static Order none() {
        return new Order(false, "none", 0, 0, 0, 0);
    }

    public static Order parse(String line) {
        String[] words = line.trim().split(" ");
        if ((words.length == 3 || words.length == 4) && words[0].equals("rate")) {
            return new Order(false, words[1], Double.parseDouble(words[2]), 0, 0, shift(words, 3));
        }
        if ((words.length == 5 || words.length == 6) && words[0].equals("log")) {
            double rate = Double.parseDouble(words[2]);
            return new Order(
                    true, words[1], rate, Double.parseDouble(words[3]), Long.parseLong(words[4]), shift(words, 5));
        }
        throw new IllegalArgumentException(
                "an order must be 'rate ID RATE [SHIFT]' or 'log ID RATE ARRIVED AT_MS [SHIFT]', but got '" + line + "'");
    }

    private static long shift(String[] words, int at) {
        long shift = words.length > at ? Long.parseLong(words[at]) : 0;
        if (shift < 0) {
            throw new IllegalArgumentException("a shift must be 0 or more events, but got " + shift);
        }
        return shift;
    }

    /** Records that are in the log at {@code nowMs}. */
    public long arrivedAt(double nowMs) {
        return (long) (arrived + recordsPerSecond * Math.max(0, nowMs - atMs) / 1000);
    }
}
