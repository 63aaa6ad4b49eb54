package sluice.dataflow;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import sluice.source.RatedSource;

/** Builds a job of operators with stated costs, such as word count with rate-limited operators, from a {@link Spec}. */
public final class Dataflow {
    private final Spec spec;
    private final String control;
    private final StreamExecutionEnvironment env;
    private final Map<String, SingleOutputStreamOperator<Tuple2<Long, byte[]>>> built = new HashMap<>();

    public Dataflow(Spec spec, String control, StreamExecutionEnvironment env) {
        this.spec = spec;
        this.control = control;
        this.env = env;
    }

    /** Operators must come after those that they read from. */
    public void build() {
        for (Spec.Operator operator : spec.operators) {
            List<Spec.Edge> inputs =
                    spec.edges.stream().filter(edge -> edge.to.equals(operator.name)).collect(Collectors.toList());
            SingleOutputStreamOperator<Tuple2<Long, byte[]>> made = inputs.isEmpty() ? source(operator)
                    : operator.keys != null ? keyed(operator, inputs) : plain(operator, inputs);
            built.put(operator.name, made.name(operator.name).uid(operator.name).setParallelism(operator.parallelism));
        }
    }

    private SingleOutputStreamOperator<Tuple2<Long, byte[]>> source(Spec.Operator operator) {
        RatedSource<Tuple2<Long, byte[]>> source =
                new RatedSource<>(new Offer(operator, spec.payment()), Packet.TYPE, control, operator.name);
        return env.fromSource(source, WatermarkStrategy.noWatermarks(), operator.name, Packet.TYPE);
    }

    private SingleOutputStreamOperator<Tuple2<Long, byte[]>> plain(Spec.Operator operator, List<Spec.Edge> inputs) {
        return union(operator, inputs).process(new Work.Plain(operator, spec.payment()), Packet.TYPE);
    }

    private SingleOutputStreamOperator<Tuple2<Long, byte[]>> keyed(Spec.Operator operator, List<Spec.Edge> inputs) {
        for (Spec.Edge input : inputs) {
            if (!input.partitioning.equals("hash")) {
                throw new IllegalArgumentException("all inputs of an operator with keys must be hash-partitioned, but '"
                        + operator.name + "' has one that is " + input.partitioning);
            }
        }
        Spec.Keys keys = operator.keys;
        return union(operator, inputs)
                .keyBy(packet -> Packet.key(packet.f0, keys), Types.LONG)
                .process(new Work.Keyed(operator, spec.payment()), Packet.TYPE);
    }

    private DataStream<Tuple2<Long, byte[]>> union(Spec.Operator operator, List<Spec.Edge> inputs) {
        List<DataStream<Tuple2<Long, byte[]>>> streams = new ArrayList<>();
        for (Spec.Edge input : inputs) {
            spec.operator(input.from);
            DataStream<Tuple2<Long, byte[]>> upstream = built.get(input.from);
            if (upstream == null) {
                throw new IllegalArgumentException(
                        "'" + input.from + "' must be listed before '" + operator.name + "', which reads from it");
            }
            streams.add(partitioned(upstream, input, operator));
        }
        DataStream<Tuple2<Long, byte[]>> all = streams.get(0);
        for (DataStream<Tuple2<Long, byte[]>> more : streams.subList(1, streams.size())) {
            all = all.union(more);
        }
        return all;
    }

    private DataStream<Tuple2<Long, byte[]>> partitioned(
            DataStream<Tuple2<Long, byte[]>> upstream, Spec.Edge edge, Spec.Operator operator) {
        switch (edge.partitioning) {
            case "forward":
                return upstream.forward();
            case "rebalance":
                return upstream.rebalance();
            case "broadcast":
                return upstream.broadcast();
            case "hash":
                if (operator.keys == null) {
                    throw new IllegalArgumentException(
                            "'" + operator.name + "' reads by hash and needs to know its keys");
                }
                return upstream;
            default:
                throw new IllegalArgumentException("a partitioning must be forward, rebalance, hash or broadcast, but '"
                        + edge.from + "' to '" + edge.to + "' is " + edge.partitioning);
        }
    }
}
