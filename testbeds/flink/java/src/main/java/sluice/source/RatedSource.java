package sluice.source;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/** An unbounded source whose rate is set from outside while the job runs; see {@link Control} and {@link Order}. */
public final class RatedSource<T> implements Source<T, Lane, List<Lane>>, ResultTypeQueryable<T> {
    private static final long serialVersionUID = 1;

    private final Events<T> events;
    private final TypeInformation<T> type;
    private final String control;
    private final String name;

    /**
     * @param control HOST:PORT that sets the rate
     * @param name of the source there
     */
    public RatedSource(Events<T> events, TypeInformation<T> type, String control, String name) {
        this.events = events;
        this.type = type;
        this.control = control;
        this.name = name;
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SplitEnumerator<Lane, List<Lane>> createEnumerator(SplitEnumeratorContext<Lane> context) {
        List<Lane> all = new ArrayList<>();
        for (int number = 0; number < Lanes.COUNT; number++) {
            all.add(new Lane(number, number));
        }
        return new LaneEnumerator(context, all);
    }

    @Override
    public SplitEnumerator<Lane, List<Lane>> restoreEnumerator(
            SplitEnumeratorContext<Lane> context, List<Lane> waiting) {
        return new LaneEnumerator(context, waiting);
    }

    @Override
    public SourceReader<T, Lane> createReader(SourceReaderContext context) {
        return new LaneReader<>(context, events, control, name);
    }

    @Override
    public SimpleVersionedSerializer<Lane> getSplitSerializer() {
        return new Lane.OneSerializer();
    }

    @Override
    public SimpleVersionedSerializer<List<Lane>> getEnumeratorCheckpointSerializer() {
        return new Lane.ListSerializer();
    }

    @Override
    public TypeInformation<T> getProducedType() {
        return type;
    }
}
