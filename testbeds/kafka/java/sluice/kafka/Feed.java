package sluice.kafka;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.RecordMetadata;
import sluice.source.Control;
import sluice.source.Order;

/**
 * Writes records at the rate that its control orders. What counts as emitted is what the broker has acknowledged; a record
 * that is due counts as pending until then.
 */
final class Feed implements AutoCloseable {
    private static final int MOST_AT_ONCE = 256;
    private static final long PAUSE_NANOS = 500_000;
    private static final long REPORT_MS = 50;

    private final Records records;
    private final Producer<byte[], byte[]> producer;
    private final Control control;
    private final AtomicLong writtenInAll = new AtomicLong();
    private final Thread reports = new Thread(this::keepReporting, "sluice-feed-reports");
    private volatile Written written = new Written(Order.none());
    private long sent;
    private long sentInAll;
    private volatile Exception failure;

    Feed(Records records, Producer<byte[], byte[]> producer, Control control) {
        this.records = records;
        this.producer = producer;
        this.control = control;
    }

    /** Until a record cannot be written, or the controller has been away for longer than its lease. */
    void run() throws Exception {
        records.open();
        reports.setDaemon(true);
        reports.start();
        while (failure == null) {
            follow(control.order());
            long due = written.due(System.nanoTime());
            if (sent < due) {
                send(Math.min(due - sent, MOST_AT_ONCE));
            } else {
                LockSupport.parkNanos(PAUSE_NANOS);
            }
        }
        throw failure;
    }

    /** By a thread of its own: while no broker answers, sending waits. */
    private void keepReporting() {
        try {
            while (true) {
                control.report(written.report(System.nanoTime()));
                Thread.sleep(REPORT_MS);
            }
        } catch (InterruptedException closed) {
            // The feed has ended.
        }
    }

    private void follow(Order next) throws IOException {
        if (next.id.equals(written.order.id)) {
            return;
        }
        if (next.log) {
            throw new IOException("a feed of Kafka follows orders of the kind 'rate' only");
        }
        written = new Written(next);
        sent = 0;
    }

    private void send(long count) {
        long nowMs = System.currentTimeMillis();
        for (long i = 0; i < count; i++) {
            producer.send(records.at(sentInAll++, nowMs), written);
            sent++;
        }
    }

    @Override
    public void close() throws IOException {
        reports.interrupt();
        control.close();
    }

    /** Counts the acknowledged records of one order. */
    private final class Written implements Callback {
        private final Order order;
        private final long sinceNanos = System.nanoTime();
        private final AtomicLong records = new AtomicLong();

        Written(Order order) {
            this.order = order;
        }

        long due(long nowNanos) {
            return (long) (order.recordsPerSecond * (nowNanos - sinceNanos) / 1e9);
        }

        String report(long nowNanos) {
            long emitted = records.get();
            long pending = Math.max(0, due(nowNanos) - emitted);
            double seconds = (nowNanos - sinceNanos) / 1e9;
            return order.id + " " + seconds + " " + emitted + " " + pending + " " + writtenInAll.get();
        }

        @Override
        public void onCompletion(RecordMetadata where, Exception error) {
            if (error == null) {
                records.incrementAndGet();
                writtenInAll.incrementAndGet();
            } else {
                failure = error;
            }
        }
    }
}
