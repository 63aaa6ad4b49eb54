package sluice.dataflow;

import org.apache.flink.api.java.tuple.Tuple2;
import sluice.source.Events;

/** The records that a source of a dataflow emits; each record is paid for. */
final class Offer implements Events<Tuple2<Long, byte[]>> {
    private static final long serialVersionUID = 1;

    private final Spec.Operator operator;
    private final Cost.Payment payment;
    private transient Cost cost;
    private transient byte[] filling;

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
    public Tuple2<Long, byte[]> at(long index, long timeMs) {
        cost.pay();
        return Tuple2.of(Packet.first(index), filling);
    }
}
