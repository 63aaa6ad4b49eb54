package sluice;

import java.lang.reflect.InvocationTargetException;
import java.util.List;
import java.util.Map;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;
import sluice.dataflow.Dataflow;
import sluice.dataflow.Spec;

/** Submits a job that one JSON document describes: a SQL script, a user's jar, or operators with stated costs. */
public final class Run {
    /** The fields of the JSON document; exactly one of {@code sql}, {@code entry_class} and {@code dataflow} is given. */
    public static final class Request {
        public String name;
        public String sql;
        /** With SQL: options of the tables that recorded files replace, by name. */
        public Map<String, Map<String, String>> stand_ins = Map.of();
        /** With SQL: whether written rows are discarded. */
        public boolean discard_sinks;
        /** With SQL: the brokers that its Kafka tables use, in place of those that it names. */
        public String kafka;
        /** A class with a main method that is in this jar, too. */
        public String entry_class;
        public List<String> arguments = List.of();
        public Spec dataflow;
        /** HOST:PORT that sets the rates; in SQL the tables name it themselves. */
        public String control;
        /** Whether each operator takes slots of its own; its tasks can then be placed one by one. */
        public boolean slot_per_task;
        /** Whether sources whose rate cannot be set are refused. */
        public boolean only_rated;
    }

    private Run() {}

    public static void main(String[] args) throws Throwable {
        if (args.length != 1) {
            throw new IllegalArgumentException("one argument is needed, the JSON document, but got " + args.length);
        }
        Request request = new ObjectMapper().readValue(args[0], Request.class);
        int given = (request.sql == null ? 0 : 1) + (request.entry_class == null ? 0 : 1)
                + (request.dataflow == null ? 0 : 1);
        if (given != 1) {
            throw new IllegalArgumentException("exactly one of 'sql', 'entry_class' and 'dataflow' must be given");
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.getExecutionEnvironment();
        if (request.entry_class != null) {
            Shape shape = new Shape(request.slot_per_task, true, request.only_rated, env.getConfiguration());
            ShapedEnvironment.use(env, shape, request.name);
            call(request.entry_class, request.arguments);
            return;
        }
        if (request.sql != null) {
            new SqlJob(request.stand_ins, request.discard_sinks, request.kafka, env).build(request.sql);
        } else {
            new Dataflow(request.dataflow, request.control, env).build();
        }
        Shape shape = new Shape(request.slot_per_task, request.sql != null, request.only_rated, env.getConfiguration());
        StreamGraph graph = shape.of(env.getTransformations(), env::getStreamGraph);
        graph.setJobName(request.name);
        env.execute(graph);
    }

    /** Exceptions of the method are rethrown; Flink ends programs that it only plans by an error. */
    private static void call(String entryClass, List<String> arguments) throws Throwable {
        try {
            Class.forName(entryClass, true, Run.class.getClassLoader()).getMethod("main", String[].class)
                    .invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        } catch (ClassNotFoundException | NoSuchMethodException error) {
            throw new IllegalArgumentException(
                    "the jar must hold a class " + entryClass + " with a public static void main(String[])", error);
        }
    }
}
