package sluice;

import java.util.Collection;
import java.util.HashSet;
import java.util.Set;
import org.apache.flink.api.dag.Transformation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamEdge;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.streaming.api.graph.StreamNode;
import org.apache.flink.streaming.api.transformations.PhysicalTransformation;
import org.apache.flink.streaming.runtime.partitioner.ForwardPartitioner;
import org.apache.flink.streaming.runtime.partitioner.RebalancePartitioner;
import org.apache.flink.table.api.bridge.java.StreamStatementSet;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import sluice.dataflow.Dataflow;
import sluice.dataflow.Spec;

/** Submits a job that one JSON document describes: a SQL script, or a dataflow of operators with stated costs. */
public final class Run {
    /** The fields are those of the JSON document; exactly one of {@code sql} and {@code dataflow} is given. */
    public static final class Request {
        public String name;
        public String sql;
        public Spec dataflow;
        /** HOST:PORT of who sets the rates; in SQL the tables name it themselves. */
        public String control;
        /** Whether each operator takes slots of its own; its tasks can then be placed one by one. */
        public boolean slot_per_task;
    }

    private Run() {}

    public static void main(String[] args) throws Exception {
        if (args.length != 1) {
            throw new IllegalArgumentException("one argument is needed, the JSON document, but got " + args.length);
        }
        Request request = new ObjectMapper().readValue(args[0], Request.class);
        if ((request.sql == null) == (request.dataflow == null)) {
            throw new IllegalArgumentException("exactly one of 'sql' and 'dataflow' must be given");
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        if (request.sql != null) {
            build(request.sql, env);
        } else {
            new Dataflow(request.dataflow, request.control, env).build();
        }
        if (request.slot_per_task) {
            separateSlots(env.getTransformations(), new HashSet<>());
        }
        StreamGraph graph = env.getStreamGraph();
        graph.setJobName(request.name);
        if (request.slot_per_task && request.sql != null) {
            dealOutEvenly(graph);
        }
        env.execute(graph);
    }

    /**
     * Flink fixes which tasks an edge joins while all operators have a single task, as "forward". Once their numbers
     * differ that would give some tasks more than others; so does a later change of them.
     */
    private static void dealOutEvenly(StreamGraph graph) {
        for (StreamNode node : graph.getStreamNodes()) {
            for (StreamEdge edge : node.getOutEdges()) {
                if (edge.getPartitioner() instanceof ForwardPartitioner) {
                    edge.setPartitioner(new RebalancePartitioner<>());
                }
            }
        }
    }

    /** All INSERTs become one job; what stands before them is executed. */
    private static void build(String script, StreamExecutionEnvironment env) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(env);
        StreamStatementSet inserts = tables.createStatementSet();
        boolean any = false;
        for (String statement : SqlScript.statements(script)) {
            if (statement.regionMatches(true, 0, "INSERT ", 0, 7)) {
                inserts.addInsertSql(statement);
                any = true;
            } else {
                set(tables, statement);
            }
        }
        if (!any) {
            throw new IllegalArgumentException("the SQL script must hold an INSERT INTO a sink table");
        }
        inserts.attachAsDataStream();
    }

    /** SET 'key' = 'value' is a statement of the SQL client, not of Flink. */
    private static void set(StreamTableEnvironment tables, String statement) {
        if (statement.regionMatches(true, 0, "SET ", 0, 4)) {
            String[] sides = statement.substring(4).split("=", 2);
            if (sides.length != 2) {
                throw new IllegalArgumentException("it must be SET 'key' = 'value', but got: " + statement);
            }
            tables.getConfig().set(unquoted(sides[0]), unquoted(sides[1]));
            return;
        }
        tables.executeSql(statement);
    }

    private static String unquoted(String text) {
        String bare = text.trim();
        return bare.startsWith("'") && bare.endsWith("'") ? bare.substring(1, bare.length() - 1) : bare;
    }

    private static void separateSlots(Collection<Transformation<?>> transformations, Set<Integer> seen) {
        for (Transformation<?> transformation : transformations) {
            if (seen.add(transformation.getId())) {
                if (transformation instanceof PhysicalTransformation) {
                    transformation.setSlotSharingGroup("slots-" + transformation.getId());
                }
                separateSlots(new HashSet<>(transformation.getInputs()), seen);
            }
        }
    }
}
