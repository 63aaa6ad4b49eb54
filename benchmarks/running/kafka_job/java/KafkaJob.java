import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;

/**
 * Reads JSON from Kafka, parses it, counts records by key, and stores them nowhere. Each step waits for as long as it is
 * told, as for a service that it calls.
 *
 * <p>Arguments: bootstrap servers, topic, consumer group, microseconds to parse, to count and to store, share of records that
 * get one key, and whether parsing is chained to the source.
 */
public final class KafkaJob {
    private static final class Wait<T> implements MapFunction<T, T> {
        private static final long serialVersionUID = 1L;
        private final long nanos;

        Wait(long micros) {
            nanos = 1000 * micros;
        }

        @Override
        public T map(T value) {
            await(nanos);
            return value;
        }
    }

    private static final class Count extends RichMapFunction<String, Long> {
        private static final long serialVersionUID = 1L;
        private final long nanos;
        private transient ValueState<Long> seen;

        Count(long micros) {
            nanos = 1000 * micros;
        }

        @Override
        public Long map(String value) throws Exception {
            if (seen == null) {
                seen = getRuntimeContext().getState(new ValueStateDescriptor<>("seen", Long.class));
            }
            await(nanos);
            Long before = seen.value();
            long now = before == null ? 1 : before + 1;
            seen.update(now);
            return now;
        }
    }

    private static final class Key implements KeySelector<String, String> {
        private static final long serialVersionUID = 1L;
        private final int hotPerMille;

        Key(double hot) {
            hotPerMille = (int) Math.round(1000 * hot);
        }

        @Override
        public String getKey(String record) {
            int at = record.indexOf("\"id\":") + 5;
            long id = Long.parseLong(record.substring(at, record.indexOf(',', at)));
            // A multiplicative hash, so that hot records do not come in turns.
            long mixed = ((id * 0x9E3779B97F4A7C15L) >>> 33) % 1000;
            int key = record.indexOf("\"key\":\"") + 7;
            return mixed < hotPerMille ? "hot" : record.substring(key, record.indexOf('"', key));
        }
    }

    private static void await(long nanos) {
        long until = System.nanoTime() + nanos;
        for (long left = nanos; left > 0; left = until - System.nanoTime()) {
            LockSupport.parkNanos(left);
        }
    }

    public static void main(String[] args) throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        KafkaSource<String> source = KafkaSource.<String>builder()
                .setBootstrapServers(args[0])
                .setTopics(args[1])
                .setGroupId(args[2])
                .setStartingOffsets(OffsetsInitializer.earliest())
                .setValueOnlyDeserializer(new SimpleStringSchema())
                .build();
        SingleOutputStreamOperator<String> parsed = env
                .fromSource(source, WatermarkStrategy.noWatermarks(), "card transactions")
                .map(new Wait<String>(Long.parseLong(args[3])))
                .name("parse");
        if (!Boolean.parseBoolean(args[7])) {
            parsed = parsed.disableChaining();
        }
        SingleOutputStreamOperator<Long> counted =
                parsed.keyBy(new Key(Double.parseDouble(args[6]))).map(new Count(Long.parseLong(args[4]))).name("count");
        counted.disableChaining()
                .map(new Wait<Long>(Long.parseLong(args[5])))
                .disableChaining()
                .name("store")
                .sinkTo(new DiscardingSink<>())
                .name("nowhere");
        env.execute(args[2]);
    }
}
