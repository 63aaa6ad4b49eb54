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
import org.apache.flink.runtime.jobgraph.JobVertexID;
import org.apache.flink.runtime.scheduler.strategy.ExecutionVertexID;

/**
 * The TaskManager of each task, from a file of the JobManager ({@code -Dsluice.placement=FILE}) that is read whenever tasks
 * are scheduled: the line {@code slots N} gives the slots of the cluster, lines {@code VERTEX SUBTASK TASKMANAGER} or
 * {@code VERTEX SUBTASK TASKMANAGER SLOT} the placement. Tasks of one slot sharing group that name the same slot of a
 * TaskManager share it; where none of them names a slot, slot i holds subtask i of each vertex, as in Flink by default.
 * Without file or lines tasks go anywhere. The line {@code fewer} lets a job go on with fewer tasks, or with tasks elsewhere,
 * while slots are missing; without it the job waits for them.
 */
public final class Placement {
    private static final String FILE = "sluice.placement";

    private final int clusterSlots;
    private final boolean allowsFewer;
    private final Map<String, String> workers;
    private final Map<String, String> sharedSlots;

    private Placement(
            int clusterSlots, boolean allowsFewer, Map<String, String> workers, Map<String, String> sharedSlots) {
        this.clusterSlots = clusterSlots;
        this.allowsFewer = allowsFewer;
        this.workers = workers;
        this.sharedSlots = sharedSlots;
    }

    /** The placement now in force. */
    public static Placement current() {
        String file = System.getProperty(FILE);
        if (file == null) {
            return none();
        }
        try {
            return parse(Files.readAllLines(Path.of(file)));
        } catch (NoSuchFileException absent) {
            return none();
        } catch (IOException error) {
            throw new UncheckedIOException("the placement in " + file + " cannot be read", error);
        }
    }

    /** Tasks go anywhere. */
    public static Placement none() {
        return parse(List.of());
    }

    static Placement parse(List<String> lines) {
        int slots = 0;
        boolean fewer = false;
        Map<String, String> workers = new HashMap<>();
        Map<String, String> sharedSlots = new HashMap<>();
        for (String line : lines) {
            String[] words = line.trim().split(" ");
            if (words.length == 2 && words[0].equals("slots")) {
                slots = Integer.parseInt(words[1]);
            } else if (words.length == 1 && words[0].equals("fewer")) {
                fewer = true;
            } else if (!words[0].equals("slots") && (words.length == 3 || words.length == 4)) {
                String task = words[0] + "_" + Integer.parseInt(words[1]);
                workers.put(task, words[2]);
                if (words.length == 4) {
                    sharedSlots.put(task, words[2] + "/" + Integer.parseInt(words[3]));
                }
            } else {
                throw new IllegalArgumentException("a line of a placement must be 'slots N', 'fewer' or 'VERTEX SUBTASK"
                        + " TASKMANAGER [SLOT]', but got: " + line);
            }
        }
        return new Placement(slots, fewer, workers, sharedSlots);
    }

    /** Slots of all TaskManagers together; 0 if it does not matter. */
    public int clusterSlots() {
        return clusterSlots;
    }

    /** Whether a job goes on with fewer tasks, or with tasks elsewhere, while slots are missing. */
    public boolean allowsFewer() {
        return allowsFewer;
    }

    /** Whether tasks may go anywhere. */
    public boolean isEmpty() {
        return workers.isEmpty();
    }

    /**
     * The tasks that share each slot of a slot sharing group.
     *
     * @param parallelism tasks of each vertex of the group
     */
    public List<List<ExecutionVertexID>> sharing(Map<JobVertexID, Integer> parallelism) {
        List<ExecutionVertexID> tasks = new ArrayList<>();
        parallelism.forEach((vertex, number) -> {
            for (int subtask = 0; subtask < number; subtask++) {
                tasks.add(new ExecutionVertexID(vertex, subtask));
            }
        });
        boolean named = tasks.stream().anyMatch(task -> sharedSlots.containsKey(task.toString()));
        Map<String, List<ExecutionVertexID>> slots = new LinkedHashMap<>();
        List<ExecutionVertexID> others = new ArrayList<>();
        for (ExecutionVertexID task : tasks) {
            String name = named ? sharedSlots.get(task.toString()) : String.valueOf(task.getSubtaskIndex());
            if (name == null) {
                others.add(task);
            } else {
                addTo(slots.computeIfAbsent(name, none -> new ArrayList<>()), task, name);
            }
        }
        List<List<ExecutionVertexID>> sharing = new ArrayList<>(slots.values());
        others.forEach(task -> joinOne(task, sharing));
        return sharing;
    }

    private static void addTo(List<ExecutionVertexID> slot, ExecutionVertexID task, String name) {
        if (holdsVertexOf(task, slot)) {
            throw new IllegalStateException("a slot holds one task of each vertex, but the placement puts " + task
                    + " and another task of its vertex into " + name);
        }
        slot.add(task);
    }

    private static boolean holdsVertexOf(ExecutionVertexID task, List<ExecutionVertexID> slot) {
        return slot.stream().anyMatch(other -> other.getJobVertexId().equals(task.getJobVertexId()));
    }

    /** Put a task without a slot number into the first slot that may hold it, else into one of its own. */
    private void joinOne(ExecutionVertexID task, List<List<ExecutionVertexID>> sharing) {
        Optional<String> worker = workerOf(List.of(task));
        for (List<ExecutionVertexID> slot : sharing) {
            if (!holdsVertexOf(task, slot) && (worker.isEmpty() || worker.equals(workerOf(slot)))) {
                slot.add(task);
                return;
            }
        }
        sharing.add(new ArrayList<>(List.of(task)));
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
        if (anywhere.size() > free.size()) {
            throw new IllegalStateException("the placement leaves " + free.size() + " slots for " + anywhere.size()
                    + " groups of tasks that it does not name: " + anywhere);
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
