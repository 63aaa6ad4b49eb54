"""What is measured: the columns of samples and features, and the rates of a window.

One column has one name, one unit and one definition; the Arrow and Spark schemas and the expectation suites are all
built from the specification here.

Notation (DS2 Table 2): over a window of W seconds, R_prc records in, R_psd records out, W_u useful (busy) seconds.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

SAMPLE_INTERVAL_S: Final = 5.0
"""Reporting interval of a sample, seconds (StreamBed section 7)."""


class ColumnType(StrEnum):
    STRING = "string"
    LONG = "long"
    DOUBLE = "double"


@dataclass(frozen=True)
class Column:
    """One column: bounds are inclusive, None without a bound; `values` are the allowed texts, if they are limited."""

    name: str
    type: ColumnType
    unit: str
    description: str
    minimum: float | None = None
    maximum: float | None = None
    nullable: bool = False
    values: tuple[str, ...] = ()
    above_minimum: bool = False
    """Whether the minimum itself is out of bounds."""


def _text(name: str, description: str) -> Column:
    return Column(name, ColumnType.STRING, "", description)


def _amount(name: str, unit: str, description: str, maximum: float | None = None, nullable: bool = False) -> Column:
    return Column(name, ColumnType.DOUBLE, unit, description, 0.0, maximum, nullable)


SAMPLE_KEY: Final = ("run", "operator", "task", "time_s")
"""The key of samples."""

FEATURE_KEY: Final = ("run", "operator")
"""The key of features."""

SAMPLE_PHASES: Final = ("profile", "warmup", "cooldown", "ramp", "observe")

FEATURE_PHASES: Final = ("profile", "observe")
"""Phases that features are made from: the job has settled at the rate it is given."""

ROUNDING: Final = 1e-6
"""How far a DOUBLE may exceed its maximum, being a quotient of sums of floating-point numbers."""

TIME_SHARES_TOLERANCE: Final = 0.01
"""How far busy, backpressured and idle time together may exceed their interval, as a share of it: a metrics system
reads three gauges one after the other, not at one instant."""

SAMPLE_COLUMNS: Final = (
    _text("run", "Measurement run the sample belongs to."),
    _text("job", "Job name."),
    _text("operator", "Operator name."),
    Column("task", ColumnType.LONG, "", "Index of the task within its operator.", 0),
    _text("worker", "Worker (TaskManager) the task is on."),
    Column("phase", ColumnType.STRING, "", "Phase of the measurement.", values=SAMPLE_PHASES),
    _amount("time_s", "s", "End of the interval, seconds since the run began."),
    Column("interval_s", ColumnType.DOUBLE, "s", "Length of the interval.", 0.001),
    _amount("records_in", "records", "Records taken from the input; at sources, records generated."),
    _amount("records_out", "records", "Records pushed to the output; at sources, records emitted."),
    _amount("bytes_out", "bytes", "Bytes pushed to the output."),
    _amount("busy_s", "s", "Useful time: deserialising, processing, serialising, state access."),
    _amount("backpressured_s", "s", "Time waiting for buffers downstream."),
    _amount("idle_s", "s", "Time waiting for input."),
    _amount("cpu_s", "s", "CPU seconds used."),
    _amount("state_read_bytes", "bytes", "State bytes read."),
    _amount("state_written_bytes", "bytes", "State bytes written."),
    _amount("cache_hits", "accesses", "State reads answered from memory."),
    _amount("cache_misses", "accesses", "State reads that went to disk."),
    _amount(
        "state_latency_s",
        "s",
        "Mean latency of a state access; null for an operator that keeps no state.",
        nullable=True,
    ),
    _amount("lag_records", "records", "Sources: records due but not yet emitted; null elsewhere.", nullable=True),
)

_NOT_FINITE: Final = Column("not_finite", ColumnType.LONG, "values", "Values that are NaN or infinite.", 0, 0)


def _share(name: str, description: str, maximum: float) -> Column:
    return Column(name, ColumnType.DOUBLE, "ratio", description, 0.0, maximum, nullable=True)


SAMPLE_EVIDENCE: Final = (
    _share("busy_share", "busy_s over interval_s.", 1.0),
    _share("backpressured_share", "backpressured_s over interval_s.", 1.0),
    _share("idle_share", "idle_s over interval_s.", 1.0),
    _share("accounted_share", "Busy, backpressured and idle time over interval_s.", 1.0 + TIME_SHARES_TOLERANCE),
    Column(
        "step_s",
        ColumnType.DOUBLE,
        "s",
        "Time since the previous sample of the same task; null for its first. Never negative.",
        0.0,
        nullable=True,
    ),
    _NOT_FINITE,
)
"""Values derived from a sample and the one before it, checked with it."""

FEATURE_COLUMNS: Final = (
    _text("run", "Measurement run."),
    _text("job", "Job name."),
    _text("operator", "Operator name."),
    Column("tasks", ColumnType.LONG, "tasks", "Tasks of the operator that reported.", 1),
    _amount("observed_s", "s", "Longest time covered by the samples of one task."),
    _amount("observed_input_rate", "records/s", "Sum over tasks of records in per second of elapsed time (DS2 Eq. 3)."),
    _amount(
        "observed_output_rate", "records/s", "Sum over tasks of records out per second of elapsed time (DS2 Eq. 4)."
    ),
    _amount(
        "true_processing_rate",
        "records/s",
        "Sum over tasks of records in per useful second (DS2 Eq. 1, 5); null where a task had no useful time.",
        nullable=True,
    ),
    _amount(
        "true_output_rate",
        "records/s",
        "Sum over tasks of records out per useful second (DS2 Eq. 2, 6); null where a task had no useful time.",
        nullable=True,
    ),
    _amount(
        "true_rate_per_task",
        "records/s",
        "o^i of StreamBed Table 1: observed input rate per task over busyness; null where no task had useful time.",
        nullable=True,
    ),
    _amount("selectivity", "records", "Records out per record in; null where none came in.", nullable=True),
    _amount(
        "records_in_per_source_record",
        "records",
        "r^i of StreamBed Table 1: observed input rate over that of all sources together; null where nothing came in there.",
        nullable=True,
    ),
    _amount("busyness", "ratio", "Mean over tasks of the share of time busy.", 1.0),
    _amount("max_busyness", "ratio", "Share of time busy of the busiest task.", 1.0),
    _amount("backpressure", "ratio", "Mean over tasks of the share of time backpressured.", 1.0),
    _amount("idleness", "ratio", "Mean over tasks of the share of time idle.", 1.0),
    _amount("cpu_s_per_record", "s", "CPU seconds per record in; null where none came in.", nullable=True),
    _amount(
        "state_bytes_per_record",
        "bytes",
        "State bytes read and written per record in; null where none came in.",
        nullable=True,
    ),
    _amount("bytes_out_per_record", "bytes", "Bytes emitted per record in; null where none came in.", nullable=True),
    _amount(
        "cache_hit_rate", "ratio", "State reads answered from memory; null where there were none.", 1.0, nullable=True
    ),
    _amount(
        "state_latency_s",
        "s",
        "Mean latency of a state access, samples weighted by their reads; null where there were none.",
        nullable=True,
    ),
    _amount(
        "skew",
        "ratio",
        "Records in of the fullest task over the mean of its operator's tasks; null where none came in.",
        nullable=True,
    ),
)
"""One row for each run and operator, over the samples of FEATURE_PHASES. Sources are the operators with a lag."""

FEATURE_EVIDENCE: Final = (_NOT_FINITE,)
"""Values derived from a row of features, checked with it."""

OBSERVATION_KEY: Final = ("run",)
"""The key of observations."""

MOST_REPEAT_RATIO: Final = 2.0
"""How far an MST may be from the median of its budget, as a factor. Published repeats of a budget differ by less than 2;
a run that was disturbed reaches a sixth of its repeats."""

OBSERVATION_COLUMNS: Final = (
    _text("run", "Measurement run."),
    Column("task_slots", ColumnType.LONG, "slots", "Task slots of all operators but the sources.", 1),
    Column(
        "memory_mb",
        ColumnType.DOUBLE,
        "MiB",
        "Memory of one TaskManager. A value outside of the bounds is most likely in another unit.",
        64.0,
        2.0**24,
    ),
    Column(
        "mst",
        ColumnType.DOUBLE,
        "records/s",
        "Maximal sustainable throughput at the sources.",
        0.0,
        above_minimum=True,
    ),
    _amount("measured_s", "s", "Time the measurement took on the testbed."),
)
"""One row for each measured budget, including published ones."""

OBSERVATION_EVIDENCE: Final = (
    Column(
        "repeat_ratio",
        ColumnType.DOUBLE,
        "ratio",
        "MST over the median MST of all observations with the same task slots and memory.",
        1.0 / MOST_REPEAT_RATIO,
        MOST_REPEAT_RATIO,
    ),
    _NOT_FINITE,
)
"""Values derived from an observation and its repeats, checked with it."""


@dataclass(frozen=True)
class Activity:
    """Activity of the tasks of one operator over a period; all arrays float64[tasks]."""

    seconds: float
    """How long they ran."""
    records_in: np.ndarray
    records_out: np.ndarray
    busy_s: np.ndarray
    backpressured_s: np.ndarray
    idle_s: np.ndarray
    cpu_s: np.ndarray
    cache_hits: np.ndarray
    cache_misses: np.ndarray
    state_time_s: np.ndarray
    """Seconds spent on the accesses that `cache_hits` and `cache_misses` count."""
    input_queue_share: np.ndarray
    """Share of the input buffers in use at the end; 0 at sources."""
    lag_records: np.ndarray
    """Sources: records due and not read at the end; 0 elsewhere."""
    state_bytes: np.ndarray
    """State at the end; 0 where none is kept."""
    keeps_state: bool


Amount = TypeVar("Amount", float, NDArray[np.float64])


def observed_rate(records: Amount, elapsed_s: Amount) -> Amount:
    """Records per second of elapsed time (DS2 Eq. 3, 4); for scalars or arrays of tasks."""
    return records / elapsed_s


def true_rate(records: Amount, useful_s: Amount) -> Amount:
    """Records per useful (busy) second (DS2 Eq. 1, 2); for scalars or arrays of tasks; undefined where `useful_s` is 0."""
    return records / useful_s
