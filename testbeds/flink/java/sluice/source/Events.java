package sluice.source;

import java.io.IOException;
import java.io.Serializable;

/** What a source emits: event number {@code index} of a sequence that has no end. */
public interface Events<T> extends Serializable {
    /** Called once in each task, before the first event. */
    default void open() throws IOException {}

    /**
     * @param index from 0
     * @param timeMs event time, epoch milliseconds: the time of emission
     */
    T at(long index, long timeMs) throws IOException;
}
