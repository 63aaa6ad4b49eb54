import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.Map;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/**
 * Hashes records again and again: each vertex takes CPU time in proportion to its rounds of SHA-256. The source emits as much
 * as the job takes.
 *
 * <p>Arguments: the name of the job, then a vertex each, {@code NAME=TASKS=ROUNDS=INPUT,INPUT...}, after those that it reads
 * from; one without inputs is a source.
 */
public final class BurningJob {
    private static final int RECORD_BYTES = 256;

    private static final class Hash implements MapFunction<byte[], byte[]> {
        private static final long serialVersionUID = 1L;
        private final int rounds;
        private transient MessageDigest digest;

        Hash(int rounds) {
            this.rounds = rounds;
        }

        @Override
        public byte[] map(byte[] record) throws NoSuchAlgorithmException {
            if (digest == null) {
                digest = MessageDigest.getInstance("SHA-256");
            }
            byte[] hash = digest.digest(record);
            for (int round = 1; round < rounds; round++) {
                hash = digest.digest(hash);
            }
            byte[] made = record.clone();
            System.arraycopy(hash, 0, made, 0, hash.length);
            return made;
        }
    }

    private static final class Record implements MapFunction<Long, byte[]> {
        private static final long serialVersionUID = 1L;

        @Override
        public byte[] map(Long number) {
            byte[] made = new byte[RECORD_BYTES];
            for (int at = 0; at < Long.BYTES; at++) {
                made[at] = (byte) (number >>> 8 * at);
            }
            return made;
        }
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        Map<String, DataStream<byte[]>> made = new HashMap<>();
        Map<String, Integer> readers = new HashMap<>();
        for (int at = 1; at < args.length; at++) {
            String[] words = args[at].split("=", -1);
            String name = words[0];
            int tasks = Integer.parseInt(words[1]);
            DataStream<byte[]> input = null;
            for (String from : words[3].isEmpty() ? new String[0] : words[3].split(",")) {
                readers.merge(from, 1, Integer::sum);
                DataStream<byte[]> one = made.get(from).rebalance();
                input = input == null ? one : input.union(one);
            }
            if (input == null) {
                input = env.fromSequence(0, Long.MAX_VALUE).setParallelism(tasks).map(new Record()).setParallelism(tasks);
            }
            SingleOutputStreamOperator<byte[]> hashed =
                    input.map(new Hash(Integer.parseInt(words[2]))).setParallelism(tasks).name(name);
            made.put(name, hashed);
        }
        made.forEach((name, stream) -> {
            if (!readers.containsKey(name)) {
                stream.sinkTo(new DiscardingSink<>()).setParallelism(stream.getParallelism()).name("nowhere");
            }
        });
        env.execute(args[0]);
    }
}
