import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/** A chain of many vertices, each of which passes on what it gets. Arguments: vertices, and milliseconds between records of a task. */
public final class WideJob {
    private static final class Pace implements MapFunction<Long, Long> {
        private static final long serialVersionUID = 1L;
        private final long millis;

        Pace(long millis) {
            this.millis = millis;
        }

        @Override
        public Long map(Long value) throws Exception {
            Thread.sleep(millis);
            return value;
        }
    }

    private static final class Pass implements MapFunction<Long, Long> {
        private static final long serialVersionUID = 1L;

        @Override
        public Long map(Long value) {
            return value + 1;
        }
    }

    public static void main(String[] args) throws Exception {
        int vertices = Integer.parseInt(args[0]);
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        DataStream<Long> stream =
                env.fromSequence(0, Long.MAX_VALUE).name("numbers").map(new Pace(Long.parseLong(args[1]))).name("pace");
        for (int step = 2; step < vertices; step++) {
            stream = stream.map(new Pass()).name("step " + step).disableChaining();
        }
        stream.sinkTo(new DiscardingSink<>()).name("nowhere").disableChaining();
        env.execute("a wide job");
    }
}
