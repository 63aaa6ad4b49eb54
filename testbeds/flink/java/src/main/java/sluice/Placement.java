package sluice;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;

/**
 * The TaskManager of each task, from a file of the JobManager ({@code -Dsluice.placement=FILE}) that is read whenever tasks
 * are scheduled: the line {@code slots N} gives the slots of the cluster, lines {@code VERTEX SUBTASK TASKMANAGER} the
 * placement. Without file or lines tasks go anywhere.
 */
public final class Placement {
    private static final String FILE = "sluice.placement";

    private final int clusterSlots;
    private final Map<String, String> workers;

    private Placement(int clusterSlots, Map<String, String> workers) {
        this.clusterSlots = clusterSlots;
        this.workers = workers;
    }

    /** The placement now in force. */
    public static Placement current() {
        String file = System.getProperty(FILE);
        if (file == null) {
            return parse(List.of());
        }
        try {
            return parse(Files.readAllLines(Path.of(file)));
        } catch (NoSuchFileException none) {
            return parse(List.of());
        } catch (IOException error) {
            throw new UncheckedIOException("the placement in " + file + " cannot be read", error);
        }
    }

    static Placement parse(List<String> lines) {
        int slots = 0;
        Map<String, String> workers = new HashMap<>();
        for (String line : lines) {
            String[] words = line.trim().split(" ");
            if (words.length == 2 && words[0].equals("slots")) {
                slots = Integer.parseInt(words[1]);
            } else if (words.length == 3) {
                workers.put(words[0] + "_" + Integer.parseInt(words[1]), words[2]);
            } else {
                throw new IllegalArgumentException(
                        "a line of a placement must be 'slots N' or 'VERTEX SUBTASK TASKMANAGER', but got: " + line);
            }
        }
        return new Placement(slots, workers);
    }

    /** Slots of all TaskManagers together; 0 if it does not matter. */
    public int clusterSlots() {
        return clusterSlots;
    }

    /** Whether tasks may go anywhere. */
    public boolean isEmpty() {
        return workers.isEmpty();
    }

    /**
     * A slot for each group of tasks that share one. Groups that the placement names come first, so that no other takes the
     * slot they need; the others take slots in the order they are offered.
     *
     * @param taskManager name of the TaskManager that a slot is on
     */
    public <G, S> Map<G, S> assigned(Collection<G> groups, Function<G, ? extends Collection<ExecutionVertexID>> tasks,
            Collection<? extends S> slots, Function<S, String> taskManager) {
        List<S> free = new ArrayList<>(slots);
        Map<G, S> assigned = new LinkedHashMap<>();
        List<G> anywhere = new ArrayList<>();
        for (G group : groups) {
            Optional<String> worker = workerOf(tasks.apply(group));
            if (worker.isPresent()) {
                assigned.put(group, takeSlot(free, worker.get(), taskManager, tasks.apply(group)));
            } else {
                anywhere.add(group);
            }
        }
        for (G group : anywhere) {
            assigned.put(group, free.remove(0));
        }
        return assigned;
    }

    private static <S> S takeSlot(
            List<S> free, String worker, Function<S, String> taskManager, Collection<ExecutionVertexID> sharing) {
        for (S slot : free) {
            if (taskManager.apply(slot).equals(worker)) {
                free.remove(slot);
                return slot;
            }
        }
        throw new IllegalStateException("the placement puts " + sharing + " on TaskManager " + worker
                + ", which has no slot left for it");
    }

    /** The TaskManager for tasks that share a slot; empty if it does not matter. */
    public Optional<String> workerOf(Collection<ExecutionVertexID> sharing) {
        String found = null;
        for (ExecutionVertexID task : sharing) {
            String worker = workers.get(task.toString());
            if (found != null && worker != null && !found.equals(worker)) {
                throw new IllegalStateException("tasks " + sharing + " share a slot, but the placement puts them on "
                        + found + " and on " + worker + "; give each task a slot of its own");
            }
            found = worker == null ? found : worker;
        }
        return Optional.ofNullable(found);
    }
}
