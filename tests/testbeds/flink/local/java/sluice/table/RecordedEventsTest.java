package sluice.table;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.flink.api.common.serialization.DeserializationSchema;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class RecordedEventsTest {
    /** Lines "TEXT EPOCH_MS". */
    private static final class Words implements DeserializationSchema<RowData> {
        private static final long serialVersionUID = 1;

        @Override
        public RowData deserialize(byte[] line) {
            String[] words = new String(line).split(" ");
            return GenericRowData.of(StringData.fromString(words[0]),
                    TimestampData.fromEpochMillis(Long.parseLong(words[1])));
        }

        @Override
        public boolean isEndOfStream(RowData row) {
            return false;
        }

        @Override
        public TypeInformation<RowData> getProducedType() {
            return TypeInformation.of(RowData.class);
        }
    }

    @Test
    void linesAreReplayedWithTheirLateness(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("recorded.txt");
        Files.writeString(file, "header 0\r\na 5000\r\n\nb 8000\nc 7500\nd 9000");
        RecordedEvents events = new RecordedEvents(file.toString(), 1, new Words(), 1, false);
        events.open();
        check(events.at(0, 100_000), "a", 100_000);
        check(events.at(1, 100_001), "b", 100_001);
        check(events.at(2, 100_002), "c", 100_002 - 500);
        check(events.at(7, 200_000), "d", 200_000);
    }

    @Test
    void aFileWithoutDataIsReported(@TempDir Path folder) throws IOException {
        Path file = folder.resolve("recorded.txt");
        expectFailure(file, file.toString());
        Files.writeString(file, "header 0\n");
        expectFailure(file, "no line of data");
    }

    private static void check(RowData row, String word, long timeMs) {
        assertEquals(word, row.getString(0).toString());
        assertEquals(timeMs, row.getTimestamp(1, 3).getMillisecond());
    }

    private static void expectFailure(Path file, String message) {
        RecordedEvents events = new RecordedEvents(file.toString(), 1, new Words(), 1, false);
        String found = assertThrows(IOException.class, events::open).getMessage();
        assertTrue(found.contains(message), found);
    }
}
