"""The tables of a simulated deployment: constants, and the state that changes from step to step.

Operators stand in topological order; tasks are numbered operator by operator. A *gate* is the input of one task from one
edge; gates are numbered edge by edge. Every table is a structured array with one record per operator, edge, gate, task
or worker.
"""

from typing import Any, NamedTuple

import numpy as np

Row = Any
"""A record of one of the tables; in compiled code its columns are attributes."""

SHARED, FORWARD, BROADCAST = 0, 1, 2
"""How an edge sends each record: to one of all tasks (hash, rebalance), to its partner, to all tasks."""
AT_ONCE, ALL_PANES, OLDEST_PANE = 0, 1, 2
"""When an operator emits: on each record; the whole window at each firing; the pane that leaves the window."""

LIMITED, LOGGED, CLOSED = 0, 1, 2
"""What sources read: a generator at a limited rate, a durable log, nothing."""
JOB_CLOCK, WALL_CLOCK, EVENT_CLOCK, LAST_EVENT = 0, 1, 2, 3
"""SimulationState.clock: steps since the job's code was loaded; steps since the job was deployed; the latest time of
arrival, in those steps, up to which all sources have read; and its value when panes last ended."""

RECORDS_IN, RECORDS_OUT, BYTES_OUT, BUSY, BACKPRESSURED, CPU, READ, WRITTEN, HITS, MISSES, STATE_TIME, LAG = range(12)
MEASURES = 12
"""Measures per task and reporting interval."""

MARKS = 32
"""Ends of panes that can wait at a task; with more, the first takes effect before its records do."""
WINDOWS_MIXED = 16
"""Windows whose records can be in flight at once."""
BELT_ROWS = 512
"""Steps whose firings are tracked separately in flight; later ones join the last."""

OPERATOR = np.dtype(
    [
        ("first", "i8"),  # its first task
        ("end", "i8"),  # one after its last task
        ("out_first", "i8"),  # its edges: Plant.out_edges[out_first:out_end]
        ("out_end", "i8"),
        ("in_first", "i8"),  # Plant.in_edges[in_first:in_end]
        ("in_end", "i8"),
        ("source_share", "f8"),  # share of the offered rate that all its tasks emit; 0 where not a source
        ("selectivity", "f8"),  # records out per record in
        ("cpu_s", "f8"),  # CPU seconds per record in
        ("read_bytes", "f8"),  # state bytes read per record in
        ("write_bytes", "f8"),  # state bytes written per record in
        ("sent_bytes", "f8"),  # bytes sent per record out, over all edges and copies
        ("fire_share", "f8"),  # share of the cost that is paid when a window fires
        ("live_per_record", "f8"),  # state bytes a record adds
        ("hot_set", "f8"),  # share of the live state that is read again
        ("emission", "i8"),  # AT_ONCE, ALL_PANES or OLDEST_PANE
        ("panes", "i8"),  # panes that live at once; 0 where state is kept for ever, or none is
        ("pane_steps", "i8"),  # steps of one pane
        (
            "ring_first",
            "i8",
        ),  # where its panes begin in the ring of the state: panes of its first task, of its second, ...
    ]
)
EDGE = np.dtype(
    [
        ("first", "i8"),  # its gates
        ("end", "i8"),
        ("kind", "i8"),  # SHARED, FORWARD or BROADCAST
        ("share", "f8"),  # share of the upstream output that takes it
        ("copies", "f8"),  # copies of a record that are sent
        ("room", "f8"),  # records that all its buffers together hold
        ("hot_share", "f8"),  # share of records with a hot key; 0 without
        ("hot_records", "f8"),  # records after which another key is hot; 0 where time decides
        ("hot_steps", "i8"),  # steps after which another key is hot; 0 where records or windows decide
        ("window", "i8"),  # operator whose windows are the hot keys; -1 where records or time decide
        ("upstream", "i8"),  # operator
        ("key_groups", "i8"),
        ("key_seed", "u8"),
    ]
)
GATE = np.dtype(
    [
        ("room", "f8"),  # records that the buffers to this task hold
        ("share", "f8"),  # share of the evenly spread records
    ]
)
TASK = np.dtype(
    [
        ("worker", "i8"),
        ("cache_bytes", "f8"),  # block cache, less what is not for blocks of data
        ("memtable_bytes", "f8"),  # write buffer; infinite where there is none
        ("key_bytes", "f8"),  # state of the keys that stay
        ("remote_bytes", "f8"),  # bytes per record out that go to other workers
        ("source_share", "f8"),  # share of the offered rate that it emits; 0 where not a source
        ("external_wait_s", "f8"),  # thread seconds per record in without a core, outside the job
    ]
)
WORKER = np.dtype(
    [
        ("first", "i8"),  # its tasks: Plant.worker_tasks[first:end]
        ("end", "i8"),
        ("cores", "f8"),  # infinite where it is not a constraint, like the next two
        ("io", "f8"),  # device bytes/s
        ("net", "f8"),  # outbound bytes/s
    ]
)

EDGE_STATE = np.dtype(
    [
        ("key", "i8"),  # how many hot keys have been
        ("left", "f8"),  # records until the next one
        ("sent", "f8"),  # records sent in this step
        ("head", "i8"),  # its belt: first row, rows in use, records on it
        ("rows", "i8"),
        ("load", "f8"),
    ]
)
GATE_STATE = np.dtype(
    [
        ("queue", "f8"),  # records waiting
        ("arrived", "f8"),  # records that came in this step
        ("free", "f8"),  # records that can be accepted in this step
        ("draw", "f8"),  # share of the task's intake that comes from here
        ("hot", "f8"),  # records with hot keys among those being sent; where time or windows decide, their share
    ]
)
TASK_STATE = np.dtype(
    [
        ("live", "f8"),  # records in live state
        ("taken", "f8"),  # records taken since the job ran
        ("turned", "i8"),  # panes that have ended
        ("pane", "i8"),  # where the youngest pane stands in SimulationState.ring
        ("marks", "i8"),  # ends of panes (watermarks) that wait behind records
        ("firing", "f8"),  # records of fired windows that wait to be emitted
        ("permits", "f8"),  # sources: records that may be emitted
        ("due", "f8"),  # sources: records due and not emitted since the rate was set
        ("log", "f8"),  # sources: records that wait in the log
        ("work", "f8"),  # CPU seconds per record, now
        ("alone", "f8"),  # thread seconds per record if it were alone on its worker
        ("service", "f8"),  # thread seconds per record, now
        ("device", "f8"),  # device bytes per record, now
        ("fire", "f8"),  # thread seconds per record of a fired window that is sent, now
        ("sendable", "f8"),  # records out that the worker's network takes in a step, now
        ("hit", "f8"),  # share of state reads answered from the cache
        ("state_wait", "f8"),  # seconds that a read waits for the device, now
        ("intake", "f8"),  # records it can take in this step
        ("want", "f8"),  # records that wait for it
        ("out", "f8"),  # records that may go out
        ("done", "f8"),  # records taken
        ("emitted", "f8"),  # records sent
        ("paid", "f8"),  # records whose cost was paid: differs from `done` where windows fire
        ("spent", "f8"),  # thread seconds
        ("blocked", "f8"),  # 1 where output was refused
        ("could_do", "f8"),  # records whose cost it would have paid on an idle worker
        ("could_send", "f8"),  # records it would have sent through an idle network
        ("cores", "f8"),  # wanted in the last steps
        ("io", "f8"),  # device bytes/s wanted in the last steps
        ("net", "f8"),  # bytes/s to other workers wanted in the last steps
        ("wanted", "f8"),  # the one of these that is being shared
    ]
)
WORKER_STATE = np.dtype(
    [
        ("speed", "f8"),  # of a core; 1 when it alone is busy
        ("core_level", "f8"),  # cores that one task can have
        ("io_level", "f8"),  # device bytes/s that one task can have
        ("net_level", "f8"),  # bytes/s that one task can send to other workers
        ("core_debt", "f8"),  # core seconds used beyond its own
        ("io_debt", "f8"),  # bytes, likewise
        ("io_used", "f8"),  # device bytes/s in the last steps
        ("io_step", "f8"),  # device bytes in this step
        ("net_debt", "f8"),  # bytes, likewise
    ]
)


class StatePrices(NamedTuple):
    """Costs of RocksDB and its device, as in `settings.StateAccess`."""

    hit_latency_s: float
    block_latency_s: float
    block_bytes: float
    blocks_per_miss: float
    most_io_load: float
    flush_s: float
    write_amplification: float
    cached_bytes_per_live_byte: float


class Plant(NamedTuple):
    """The constants of a run."""

    step_s: float
    cold_slowdown: float
    cold_decay_s: float
    full_load_slowdown: float
    source_burst_s: float
    stamped_on_arrival: bool
    access: StatePrices
    operators: np.ndarray  # OPERATOR
    edges: np.ndarray  # EDGE
    gates: np.ndarray  # GATE
    tasks: np.ndarray  # TASK
    workers: np.ndarray  # WORKER
    out_edges: np.ndarray  # int64[edges]
    in_edges: np.ndarray  # int64[edges]
    worker_tasks: np.ndarray  # int64[tasks]


class SimulationState(NamedTuple):
    """The state that changes from step to step; arrays are changed in place."""

    clock: np.ndarray  # int64[4]: JOB_CLOCK, WALL_CLOCK, EVENT_CLOCK, LAST_EVENT
    came: np.ndarray  # float64[1]: records that have come into the log
    log: np.ndarray  # float64[..., 2]: each change of their rate: WALL_CLOCK, and records that had come by then
    edges: np.ndarray  # EDGE_STATE
    gates: np.ndarray  # GATE_STATE
    tasks: np.ndarray  # TASK_STATE
    workers: np.ndarray  # WORKER_STATE
    ring: np.ndarray  # float64[...]: records in each live pane
    marks: np.ndarray  # float64[tasks, MARKS]: `taken` at which each waiting pane ends, first to last
    belt: (
        np.ndarray
    )  # float64[edges, BELT_ROWS, WINDOWS_MIXED]: records on the way to the edge, in order, by their window
    mix: np.ndarray  # float64[edges, WINDOWS_MIXED]: those of them that come next, by their window (number, modulo)


def fresh_state(plant: Plant, rng: np.random.Generator) -> SimulationState:
    """The empty state; the sequence of hot keys begins at a random position."""
    operators, edges = plant.operators, np.zeros(len(plant.edges), EDGE_STATE)
    edges["key"] = rng.integers(0, 1 << 40, len(edges))
    edges["left"] = plant.edges["hot_records"] * rng.uniform(0.0, 1.0, len(edges))
    workers = np.zeros(len(plant.workers), WORKER_STATE)
    for level in ("core_level", "io_level", "net_level"):
        workers[level] = np.inf
    tasks = np.zeros(len(plant.tasks), TASK_STATE)
    for operator in operators:
        own = np.arange(operator["end"] - operator["first"])
        tasks["pane"][operator["first"] : operator["end"]] = operator["ring_first"] + own * operator["panes"]
    return SimulationState(
        clock=np.zeros(4, np.int64),
        came=np.zeros(1),
        log=np.zeros((1, 2)),
        edges=edges,
        gates=np.zeros(len(plant.gates), GATE_STATE),
        tasks=tasks,
        workers=workers,
        marks=np.zeros((len(plant.tasks), MARKS)),
        belt=np.zeros((len(edges), BELT_ROWS, WINDOWS_MIXED)),
        mix=np.zeros((len(edges), WINDOWS_MIXED)),
        ring=np.zeros(int(np.sum((operators["end"] - operators["first"]) * operators["panes"]))),
    )
