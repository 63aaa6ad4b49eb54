package sluice.dataflow;

import org.apache.flink.api.connector.source.SourceOutput;
import org.apache.flink.api.java.tuple.Tuple2;
import sluice.source.Events;

/** The records that a source of a dataflow emits; each event is paid for, also one that is dropped. */
final class Offer implements Events<Tuple2<Long, byte[]>> {
    private static final long serialVersionUID = 1;

    private final Spec.Operator operator;
    private final Cost.Payment payment;
    private transient Cost cost;
    private transient byte[] filling;
    private transient double due;

    Offer(Spec.Operator operator, Cost.Payment payment) {
        this.operator = operator;
        this.payment = payment;
    }

    @Override
    public void open() {
        cost = new Cost(operator.cpu_s, payment);
        filling = Packet.filling(operator.bytes_out);
    }

    @Override
    public void emit(long index, long timeMs, SourceOutput<Tuple2<Long, byte[]>> output) {
        Tuple2<Long, byte[]> first = at(index, timeMs);
        due += operator.selectivity;
        for (long copy = 0; due >= 1; copy++, due--) {
            output.collect(copy == 0 ? first : Tuple2.of(Packet.copied(first.f0, copy), filling), timeMs);
        }
    }

    @Override
    public Tuple2<Long, byte[]> at(long index, long timeMs) {
        cost.pay();
        return Tuple2.of(Packet.first(index), filling);
    }
}
