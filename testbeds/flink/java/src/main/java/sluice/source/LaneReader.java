package sluice.source;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.core.io.InputStatus;

/** One task of the source: emits the events of its lanes as ordered, and reports how many are pending. */
final class LaneReader<T> implements SourceReader<T, Lane> {
    private static final long REPORT_NANOS = 50_000_000;
    private static final long AT_ONE_MOMENT_NANOS = 100_000;
    private static final int MOST_READINGS = 1000;

    private final SourceReaderContext context;
    private final Events<T> events;
    private final Lanes lanes = new Lanes();
    private final Pace pace;
    private final Control control;
    private long startNanos;
    private long startMs;
    private volatile long pending;
    private long reportedNanos;

    /**
     * Opens the events. {@link #start} would be too late: the coordinator knows the reader by then, and Flink might only
     * report that lanes were sent to a failing task, instead of the cause.
     */
    LaneReader(SourceReaderContext context, Events<T> events, String address, String name) {
        this.context = context;
        this.events = events;
        try {
            events.open();
        } catch (IOException error) {
            throw new IllegalStateException("the recorded events cannot be read: " + error.getMessage(), error);
        }
        int tasks = context.currentParallelism();
        pace = new Pace(lanes, tasks);
        control = new Control(address, name, context.getIndexOfSubtask(), tasks);
        readClocks();
    }

    /** Both clocks read at one moment: a pause between the readings would shift every reported time. */
    private void readClocks() {
        for (int tries = 0; tries < MOST_READINGS; tries++) {
            startNanos = System.nanoTime();
            startMs = System.currentTimeMillis();
            if (System.nanoTime() - startNanos < AT_ONE_MOMENT_NANOS) {
                break;
            }
        }
        reportedNanos = startNanos;
    }

    @Override
    public void start() {
        context.metricGroup().setPendingRecordsGauge(() -> pending);
    }

    @Override
    public InputStatus pollNext(ReaderOutput<T> output) throws IOException {
        long now = System.nanoTime();
        double nowMs = startMs + (now - startNanos) / 1e6;
        pace.follow(control.order(), now);
        if (now - reportedNanos >= REPORT_NANOS) {
            reportedNanos = now;
            pending = pace.pending(now, nowMs);
            control.report(pace.report(now, nowMs));
        }
        long index = pace.next(now, nowMs);
        if (index == Pace.NOTHING_DUE) {
            return InputStatus.NOTHING_AVAILABLE;
        }
        events.emit(index, (long) nowMs, output);
        return InputStatus.MORE_AVAILABLE;
    }

    @Override
    public CompletableFuture<Void> isAvailable() {
        return new CompletableFuture<Void>().completeOnTimeout(null, pace.waitMs(), TimeUnit.MILLISECONDS);
    }

    @Override
    public List<Lane> snapshotState(long checkpoint) {
        return lanes.snapshot();
    }

    @Override
    public void addSplits(List<Lane> splits) {
        lanes.add(splits);
    }

    @Override
    public void notifyNoMoreSplits() {}

    @Override
    public void close() throws IOException {
        control.close();
    }
}
