package sluice.dataflow;

import java.io.Serializable;
import java.util.List;
import java.util.Locale;

/** The specification of a dataflow; the fields are those of the JSON document. */
public final class Spec {
    public List<Operator> operators;
    public List<Edge> edges;
    /** How operators pay for records: busy, paced or shared. */
    public String cost;

    /** An operator. Costs are per record in; per record emitted at a source. */
    public static final class Operator implements Serializable {
        private static final long serialVersionUID = 1;

        public String name;
        public int parallelism;
        public double cpu_s;
        /** Records out per record in. */
        public double selectivity;
        public int bytes_out;
        /** Bytes of its key's state that each record reads and writes; 0 for none. */
        public int state_read_bytes;
        public int state_write_bytes;
        /** Null if no input is hash-partitioned. */
        public Keys keys;
    }

    /** The distribution of keys. Periods are in events of the source. */
    public static final class Keys implements Serializable {
        private static final long serialVersionUID = 1;

        public long seed;
        public long distinct;
        public double hot_share;
        public double hot_period_events;
        /** Events after which the keys have been replaced by others; 0: they stay. */
        public double lifetime_events;
    }

    public static final class Edge {
        public String from;
        public String to;
        public String partitioning;
    }

    Operator operator(String name) {
        for (Operator operator : operators) {
            if (operator.name.equals(name)) {
                return operator;
            }
        }
        throw new IllegalArgumentException("an edge names '" + name + "', which is no operator");
    }

    Cost.Payment payment() {
        return Cost.Payment.valueOf(cost.toUpperCase(Locale.ROOT));
    }
}
