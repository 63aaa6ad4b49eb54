package sluice.source;

/**
 * The event that a task may emit now. Pending are the events due by the order in force: at a rate, those since the order
 * arrived, evenly from all tasks; from a log, those that have arrived in this task's lanes. Times are passed in.
 */
final class Pace {
    static final long NOTHING_DUE = -1;

    private final Lanes lanes;
    private final int tasks;
    private Order order = Order.none();
    private long sinceNanos;
    private long emitted;
    private long emittedInAll;
    private long arrived;
    private long available;

    Pace(Lanes lanes, int tasks) {
        this.lanes = lanes;
        this.tasks = tasks;
    }

    /** Follow an order; one with the id of the order in force changes nothing. */
    void follow(Order next, long nowNanos) {
        if (next.id.equals(order.id)) {
            return;
        }
        order = next;
        sinceNanos = nowNanos;
        emitted = 0;
        available = 0;
    }

    /** Number of the event to emit now, or NOTHING_DUE. */
    long next(long nowNanos, double nowMs) {
        if (lanes.isEmpty()) {
            return NOTHING_DUE;
        }
        if (order.log) {
            if (available == 0) {
                arrived = order.arrivedAt(nowMs);
                available = lanes.lag(arrived);
            }
            return available == 0 ? NOTHING_DUE : emitted(lanes.take(arrived));
        }
        return emitted < due(nowNanos) ? emitted(lanes.take()) : NOTHING_DUE;
    }

    private long emitted(long index) {
        emitted++;
        emittedInAll++;
        available--;
        return index + order.shift;
    }

    private long due(long nowNanos) {
        return (long) (order.recordsPerSecond / tasks * seconds(nowNanos));
    }

    /** Events due and not emitted. */
    long pending(long nowNanos, double nowMs) {
        return order.log ? lanes.lag(order.arrivedAt(nowMs)) : Math.max(0, due(nowNanos) - emitted);
    }

    /** Seconds since the order in force arrived. */
    double seconds(long nowNanos) {
        return (nowNanos - sinceNanos) / 1e9;
    }

    /** How long to wait when nothing is due: until the next event is, but at least 1 ms and at most 20. */
    long waitMs() {
        double perMs = order.recordsPerSecond / tasks / 1000;
        return perMs <= 0.05 ? 20 : Math.max(1, Math.round(1 / perMs));
    }

    /** Progress of this task: order, seconds since it arrived, events emitted since then, events pending, total events. */
    String report(long nowNanos, double nowMs) {
        return order.id + " " + seconds(nowNanos) + " " + emitted + " " + pending(nowNanos, nowMs) + " " + emittedInAll;
    }
}
