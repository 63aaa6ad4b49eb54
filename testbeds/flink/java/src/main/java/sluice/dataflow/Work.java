package sluice.dataflow;

import java.util.Arrays;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.util.Collector;

/** The work of an operator per record: pays the cost, accesses state, and emits records of the stated size. */
final class Work {
    private final Spec.Operator operator;
    private final Cost cost;
    private final byte[] filling;
    private double due;

    private Work(Spec.Operator operator, Cost.Payment payment) {
        this.operator = operator;
        cost = new Cost(operator.cpu_s, payment);
        filling = Packet.filling(operator.bytes_out);
    }

    private void emit(long number, Collector<Tuple2<Long, byte[]>> out) {
        cost.pay();
        due += operator.selectivity;
        for (long copy = 0; due >= 1; copy++, due--) {
            out.collect(Tuple2.of(Packet.copied(number, copy), filling));
        }
    }

    /** Without keys. */
    static final class Plain extends ProcessFunction<Tuple2<Long, byte[]>, Tuple2<Long, byte[]>> {
        private static final long serialVersionUID = 1;
        private final Spec.Operator operator;
        private final Cost.Payment payment;
        private transient Work work;

        Plain(Spec.Operator operator, Cost.Payment payment) {
            this.operator = operator;
            this.payment = payment;
        }

        @Override
        public void open(OpenContext ignored) {
            work = new Work(operator, payment);
        }

        @Override
        public void processElement(Tuple2<Long, byte[]> in, Context context, Collector<Tuple2<Long, byte[]>> out) {
            work.emit(in.f0, out);
        }
    }

    /** With keys; each key holds one value. */
    static final class Keyed extends KeyedProcessFunction<Long, Tuple2<Long, byte[]>, Tuple2<Long, byte[]>> {
        private static final long serialVersionUID = 1;
        private final Spec.Operator operator;
        private final Cost.Payment payment;
        private transient Work work;
        private transient ValueState<byte[]> state;

        Keyed(Spec.Operator operator, Cost.Payment payment) {
            this.operator = operator;
            this.payment = payment;
        }

        @Override
        public void open(OpenContext ignored) {
            work = new Work(operator, payment);
            state = getRuntimeContext().getState(new ValueStateDescriptor<>(
                    "value", PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO));
        }

        @Override
        public void processElement(Tuple2<Long, byte[]> in, Context context, Collector<Tuple2<Long, byte[]>> out)
                throws Exception {
            byte[] value = operator.state_read_bytes > 0 ? state.value() : null;
            if (operator.state_write_bytes > 0) {
                byte[] next = value == null
                        ? new byte[operator.state_write_bytes] : Arrays.copyOf(value, operator.state_write_bytes);
                next[0]++;
                state.update(next);
            }
            work.emit(in.f0, out);
        }
    }
}
