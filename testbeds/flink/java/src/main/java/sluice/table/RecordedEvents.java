package sluice.table;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.util.SimpleUserCodeClassLoader;
import org.apache.flink.util.UserCodeClassLoader;
import sluice.source.Events;

/**
 * The lines of a file, again and again. Event time is re-based: an event gets the time at which it is emitted, less what
 * it was late by in the recording (behind the latest time before it), so that disorder stays as it was recorded.
 */
public final class RecordedEvents implements Events<RowData> {
    private static final long serialVersionUID = 1;
    private static final int NO_TIME = -1;

    private final String path;
    private final int headerLines;
    private final DeserializationSchema<RowData> format;
    private final int timeColumn;
    private final boolean timeInMs;

    private transient ByteBuffer content;
    private transient int[] starts;
    private transient int[] latenessMs;

    /**
     * @param path file on every TaskManager, or an http address; lines in UTF-8
     * @param headerLines lines to leave out at its beginning
     * @param timeColumn index of the column that holds event time; null for none
     * @param timeInMs whether that column is a BIGINT of epoch milliseconds, and no TIMESTAMP
     */
    public RecordedEvents(String path, int headerLines, DeserializationSchema<RowData> format, Integer timeColumn,
            boolean timeInMs) {
        this.path = path;
        this.headerLines = headerLines;
        this.format = format;
        this.timeColumn = timeColumn == null ? NO_TIME : timeColumn;
        this.timeInMs = timeInMs;
    }

    @Override
    public void open() throws IOException {
        openFormat();
        try (FileChannel file = opened()) {
            if (file.size() > Integer.MAX_VALUE) {
                throw new IOException(path + " has " + file.size() + " bytes, but 2 GiB is the most; take a part of it");
            }
            content = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size());
        }
        starts = lineStarts();
        if (timeColumn != NO_TIME) {
            latenessMs = lateness();
        }
    }

    /** A file that is fetched has no name any more once it is open. */
    private FileChannel opened() throws IOException {
        if (!path.startsWith("http://")) {
            return FileChannel.open(Path.of(path));
        }
        Path fetched = Files.createTempFile("sluice-recording-", "");
        try (InputStream content = new URL(path).openStream()) {
            Files.copy(content, fetched, StandardCopyOption.REPLACE_EXISTING);
            return FileChannel.open(fetched);
        } finally {
            Files.delete(fetched);
        }
    }

    @Override
    public RowData at(long index, long timeMs) throws IOException {
        int line = (int) (index % (starts.length - 1));
        RowData row = decode(line);
        if (timeColumn != NO_TIME) {
            long time = timeMs - latenessMs[line];
            ((GenericRowData) row).setField(timeColumn, timeInMs ? time : TimestampData.fromEpochMillis(time));
        }
        return row;
    }

    /** Where each line that is not empty starts; last, where the file ends. */
    private int[] lineStarts() throws IOException {
        int[] found = new int[1024];
        int count = 0;
        int skipped = 0;
        int start = 0;
        for (int end = 0; end <= content.limit(); end++) {
            if (end < content.limit() && content.get(end) != '\n') {
                continue;
            }
            if (end > start && skipped++ >= headerLines) {
                if (count + 1 == found.length) {
                    found = java.util.Arrays.copyOf(found, 2 * found.length);
                }
                found[count++] = start;
            }
            start = end + 1;
        }
        if (count == 0) {
            throw new IOException(path + " has no line of data");
        }
        found[count] = content.limit();
        return java.util.Arrays.copyOf(found, count + 1);
    }

    private int[] lateness() throws IOException {
        int[] late = new int[starts.length - 1];
        long latest = Long.MIN_VALUE;
        for (int line = 0; line < late.length; line++) {
            RowData row = decode(line);
            if (row.isNullAt(timeColumn)) {
                throw new IOException(path + ", record " + (line + 1) + ": it has no event time");
            }
            long time = timeInMs
                    ? row.getLong(timeColumn) : row.getTimestamp(timeColumn, 3).getMillisecond();
            latest = Math.max(latest, time);
            late[line] = (int) Math.min(Integer.MAX_VALUE, latest - time);
        }
        return late;
    }

    private RowData decode(int line) throws IOException {
        int end = starts[line + 1];
        while (end > starts[line] && (content.get(end - 1) == '\n' || content.get(end - 1) == '\r')) {
            end--;
        }
        byte[] text = new byte[end - starts[line]];
        content.position(starts[line]);
        content.get(text);
        RowData row = format.deserialize(text);
        if (row == null) {
            throw new IOException(path + ", record " + (line + 1) + ": the format made no row of it");
        }
        return row;
    }

    private void openFormat() throws IOException {
        try {
            format.open(new DeserializationSchema.InitializationContext() {
                @Override
                public org.apache.flink.metrics.MetricGroup getMetricGroup() {
                    return new UnregisteredMetricsGroup();
                }

                @Override
                public UserCodeClassLoader getUserCodeClassLoader() {
                    return SimpleUserCodeClassLoader.create(RecordedEvents.class.getClassLoader());
                }
            });
        } catch (Exception error) {
            throw new IOException("the format of " + path + " cannot be used: " + error.getMessage(), error);
        }
    }

}
