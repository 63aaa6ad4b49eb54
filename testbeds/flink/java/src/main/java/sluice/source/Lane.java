package sluice.source;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** One lane of the sequence of events, and the number of the next event in it: the source's state. */
public final class Lane implements SourceSplit {
    public final int number;
    long next;

    public Lane(int number, long next) {
        this.number = number;
        this.next = next;
    }

    public long next() {
        return next;
    }

    Lane copy() {
        return new Lane(number, next);
    }

    @Override
    public String splitId() {
        return Integer.toString(number);
    }

    static final class OneSerializer implements SimpleVersionedSerializer<Lane> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(Lane lane) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(12);
            write(lane, new DataOutputStream(bytes));
            return bytes.toByteArray();
        }

        @Override
        public Lane deserialize(int version, byte[] bytes) throws IOException {
            return read(new DataInputStream(new ByteArrayInputStream(bytes)));
        }
    }

    /** Lanes not yet assigned to a task: the enumerator's state. */
    static final class ListSerializer implements SimpleVersionedSerializer<List<Lane>> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(List<Lane> lanes) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream(12 * lanes.size());
            DataOutputStream out = new DataOutputStream(bytes);
            for (Lane lane : lanes) {
                write(lane, out);
            }
            return bytes.toByteArray();
        }

        @Override
        public List<Lane> deserialize(int version, byte[] bytes) throws IOException {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
            List<Lane> lanes = new ArrayList<>();
            while (in.available() > 0) {
                lanes.add(read(in));
            }
            return lanes;
        }
    }

    private static void write(Lane lane, DataOutputStream out) throws IOException {
        out.writeInt(lane.number);
        out.writeLong(lane.next);
    }

    private static Lane read(DataInputStream in) throws IOException {
        return new Lane(in.readInt(), in.readLong());
    }
}
