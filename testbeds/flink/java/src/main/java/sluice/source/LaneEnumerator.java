package sluice.source;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;

/** Assigns the lanes to the tasks when they first register; after a restart they are in the tasks' own state. */
final class LaneEnumerator implements SplitEnumerator<Lane, List<Lane>> {
    private final SplitEnumeratorContext<Lane> context;
    private final List<Lane> waiting;

    LaneEnumerator(SplitEnumeratorContext<Lane> context, List<Lane> waiting) {
        this.context = context;
        this.waiting = new ArrayList<>(waiting);
    }

    @Override
    public void start() {}

    @Override
    public void addReader(int subtask) {
        int tasks = context.currentParallelism();
        List<Lane> dealt =
                waiting.stream().filter(lane -> lane.number % tasks == subtask).collect(Collectors.toList());
        waiting.removeAll(dealt);
        for (Lane lane : dealt) {
            context.assignSplit(lane, subtask);
        }
    }

    @Override
    public void addSplitsBack(List<Lane> lanes, int subtask) {
        waiting.addAll(lanes);
    }

    @Override
    public void handleSplitRequest(int subtask, String host) {}

    @Override
    public List<Lane> snapshotState(long checkpoint) {
        return new ArrayList<>(waiting);
    }

    @Override
    public void close() {}
}
