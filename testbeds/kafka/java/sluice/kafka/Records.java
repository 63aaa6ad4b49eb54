package sluice.kafka;

import java.io.IOException;
import org.apache.kafka.clients.producer.ProducerRecord;

/** The records of a feed: number {@code index} of an infinite sequence. */
interface Records {
    /** Called once, before the first record. */
    default void open() throws IOException {}

    /**
     * @param index from 0, each in turn
     * @param nowMs the time of writing, epoch milliseconds
     */
    ProducerRecord<byte[], byte[]> at(long index, long nowMs);
}
