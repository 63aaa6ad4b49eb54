package sluice;

import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import sluice.source.Events;
import sluice.source.RatedSource;

/**
 * For jobs in jars: a source whose rate Sluice sets.
 *
 * <pre>{@code
 * DataStream<Click> clicks = Rated.source(env, "clicks", new Clicks(), TypeInformation.of(Click.class), watermarks);
 * }</pre>
 */
public final class Rated {
    /** HOST:PORT of the server that sets the rates; Sluice gives it to the jobs that it submits. */
    public static final ConfigOption<String> CONTROL = ConfigOptions.key("sluice.control").stringType().noDefaultValue();

    private Rated() {}

    /**
     * @param name of the source, unique in the job
     * @param events event 0, 1, 2, ... of an infinite sequence
     */
    public static <T> SingleOutputStreamOperator<T> source(StreamExecutionEnvironment env, String name, Events<T> events,
            TypeInformation<T> type, WatermarkStrategy<T> watermarks) {
        String control = env.getConfiguration().get(CONTROL);
        if (control == null) {
            throw new IllegalStateException("no server sets the rate of the source '" + name + "': submit the job with"
                    + " Sluice, or set " + CONTROL.key() + " to the HOST:PORT of a server");
        }
        return env.fromSource(new RatedSource<>(events, type, control, name), watermarks, name, type).uid("source-" + name)
                .setDescription("sluice.Rated(" + name + ")");
    }
}
