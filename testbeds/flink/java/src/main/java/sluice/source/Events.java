package sluice.source;

import java.io.IOException;
import java.io.Serializable;
import org.apache.flink.api.connector.source.SourceOutput;

/** The events of a source: number {@code index} of an infinite sequence. */
public interface Events<T> extends Serializable {
    /** Called once in each task, before the first event. */
    default void open() throws IOException {}

    /**
     * @param index from 0
     * @param timeMs event time, epoch milliseconds: the time of emission
     */
    T at(long index, long timeMs) throws IOException;

    /** Emits an event; a source may drop it, or make several records of it. */
    default void emit(long index, long timeMs, SourceOutput<T> output) throws IOException {
        output.collect(at(index, timeMs), timeMs);
    }
}
