package sluice.kafka;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * The records of several topics, merged in the order of their arrival, again and again. The file is that of
 * {@code testbeds/kafka/feeding/replay.py}: for each record {@code int topic, int partition, long msSinceFirst, long msLate, int
 * keyLength, key, int valueLength, value, int timeStart, int timeLength, int timeForm}; a length of -1 is null, and a start of
 * -1 means that the value holds no time.
 */
final class ReplayedRecords implements Records {
    static final int AS_NUMBER = 0;
    static final int WITH_T = 1;
    static final int WITH_ZONE = 2;

    private static final DateTimeFormatter DATE = DateTimeFormatter.ofPattern("yyyy-MM-dd");
    private static final DateTimeFormatter TIME = DateTimeFormatter.ofPattern("HH:mm:ss.SSS");

    /** A topic to write to. */
    static final class Target {
        final String topic;
        final int partitions;
        final boolean asRecorded;

        /** @param asRecorded whether records go to the partition that they had, and not to that of their key */
        Target(String topic, int partitions, boolean asRecorded) {
            this.topic = topic;
            this.partitions = partitions;
            this.asRecorded = asRecorded;
        }
    }

    private final Path file;
    private final boolean recordedTime;
    private final long periodMs;
    private final Target[] targets;
    private ByteBuffer content;
    private long loops;
    private long beganMs = -1;

    /**
     * @param recordedTime whether times stay as far apart as they were recorded; otherwise a record has the time of writing,
     *     less what it was late by
     * @param periodMs added to recorded times each time that the file begins again
     */
    ReplayedRecords(Path file, boolean recordedTime, long periodMs, Target[] targets) {
        this.file = file;
        this.recordedTime = recordedTime;
        this.periodMs = periodMs;
        this.targets = targets;
    }

    @Override
    public void open() throws IOException {
        try (FileChannel channel = FileChannel.open(file)) {
            content = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
        }
    }

    @Override
    public ProducerRecord<byte[], byte[]> at(long index, long nowMs) {
        if (beganMs < 0) {
            beganMs = nowMs;
        }
        if (!content.hasRemaining()) {
            content.rewind();
            loops++;
        }
        Target target = targets[content.getInt()];
        int recorded = content.getInt();
        long sinceFirst = content.getLong();
        long late = content.getLong();
        byte[] key = bytes();
        byte[] value = bytes();
        int start = content.getInt();
        int length = content.getInt();
        int form = content.getInt();
        long time = Math.max(0, recordedTime ? beganMs + loops * periodMs + sinceFirst : nowMs - late);
        if (start >= 0) {
            value = spliced(value, start, length, text(time, form).getBytes(StandardCharsets.US_ASCII));
        }
        Integer partition = null;
        if (target.asRecorded && recorded >= 0) {
            partition = recorded;
        } else if (key == null) {
            partition = (int) (index % target.partitions);
        }
        return new ProducerRecord<>(target.topic, partition, time, key, value);
    }

    private byte[] bytes() {
        int length = content.getInt();
        if (length < 0) {
            return null;
        }
        byte[] bytes = new byte[length];
        content.get(bytes);
        return bytes;
    }

    private static byte[] spliced(byte[] value, int start, int length, byte[] text) {
        byte[] made = new byte[value.length - length + text.length];
        System.arraycopy(value, 0, made, 0, start);
        System.arraycopy(text, 0, made, start, text.length);
        int rest = start + length;
        System.arraycopy(value, rest, made, start + text.length, value.length - rest);
        return made;
    }

    private static String text(long timeMs, int form) {
        if (form == AS_NUMBER) {
            return Long.toString(timeMs);
        }
        LocalDateTime time = LocalDateTime.ofInstant(Instant.ofEpochMilli(timeMs), ZoneOffset.UTC);
        // WITH_T and WITH_ZONE are bits beside a third that says it is a text.
        return '"' + DATE.format(time) + ((form & WITH_T) != 0 ? 'T' : ' ') + TIME.format(time)
                + ((form & WITH_ZONE) != 0 ? "Z" : "") + '"';
    }
}
