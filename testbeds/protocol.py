"""The protocol of testbeds: deploy a configuration of a job, and inject at a given rate for a given time.

The decision cores decide what to inject next; a testbed only executes it, and reports samples.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Literal, Protocol, Self

import numpy as np
import pyarrow as pa

from models.cluster import Cluster
from models.errors import InvalidInput, SluiceError
from models.job import Job
from models.metrics import SAMPLE_COLUMNS, SAMPLE_INTERVAL_S, Activity, ColumnType
from models.plan.parts import Placement

_ARROW_TYPES = {ColumnType.STRING: pa.string(), ColumnType.LONG: pa.int64(), ColumnType.DOUBLE: pa.float64()}

SAMPLE_SCHEMA = pa.schema([pa.field(c.name, _ARROW_TYPES[c.type], nullable=c.nullable) for c in SAMPLE_COLUMNS])
"""Arrow schema of samples, from the column specification in `models.metrics`."""


@dataclass(frozen=True)
class Configuration:
    """The configuration to deploy."""

    parallelism: Mapping[str, int]
    """Tasks of each operator, sources included."""
    memory_mb: float
    """Memory of one TaskManager, MiB."""
    placement: Placement | None = None
    """Worker -> operator -> tasks; None leaves it to the testbed, which spreads every operator evenly, sources on
    workers of their own."""
    managed_memory_mb: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Managed memory of one task, MiB, if it differs from the even share of its TaskManager's."""


@dataclass(frozen=True)
class Limits:
    """The limits of a testbed."""

    max_task_slots: int
    """Task slots for operators other than sources."""
    memory_levels_mb: tuple[float, ...]
    """TaskManager memory sizes it can deploy, MiB, ascending."""
    slots_per_worker: int
    max_source_tasks: int | None = None
    """Tasks of all sources together; None: no limit."""
    source_burst_s: float | Literal["all"] = "all"
    """Burst of an injecting source: after backpressure it may catch up with the records of this time, seconds."""


@dataclass(frozen=True)
class MeasuredWindow:
    """The results of injecting a rate."""

    target_rate: float
    """Records/s offered to the sources together."""
    achieved_rate: float
    """Records/s that the sources took in together, mean over the window; they emit the records that they do not drop."""
    seconds: float
    pending_records: float
    """Records due but not taken in at the end of the window, all sources."""
    samples: pa.Table
    """Samples of the window's reporting intervals, with SAMPLE_SCHEMA."""


def sample_intervals(rate: float, seconds: float) -> int:
    """The number of reporting intervals of an injection.

    Raises:
        InvalidInput: the rate is not above 0, or `seconds` is not a multiple of the reporting interval.
    """
    if not (rate > 0 and math.isfinite(rate)):
        raise InvalidInput(f"the injected rate must be above 0 and finite, but got {rate:g} records/s")
    return _whole_intervals(seconds)


def served_intervals(rate: float, seconds: float) -> int:
    """The number of reporting intervals of serving a rate.

    Raises:
        InvalidInput: the rate is below 0, or `seconds` is not a multiple of the reporting interval.
    """
    if not (rate >= 0 and math.isfinite(rate)):
        raise InvalidInput(f"records must arrive at a finite rate of 0 or more, but got {rate:g} records/s")
    return _whole_intervals(seconds)


def _whole_intervals(seconds: float) -> int:
    intervals = seconds / SAMPLE_INTERVAL_S
    if not (intervals >= 1 and math.isclose(intervals, round(intervals), abs_tol=1e-9)):
        raise InvalidInput(
            f"a rate must last a multiple of the reporting interval of {SAMPLE_INTERVAL_S:g} s, but got {seconds:g} s"
        )
    return round(intervals)


class Disturbed(SluiceError):
    """A fault of the testbed interrupted a measurement; repeating it in another run may succeed."""


class Run(Protocol):
    """A deployed job. Time passes only in `inject`."""

    @property
    def elapsed_s(self) -> float:
        """Time since the job was deployed, seconds of the testbed's own clock."""
        ...

    def inject(self, rate: float, seconds: float, phase: str) -> MeasuredWindow:
        """Offer `rate` records/s to the sources (split by their rate_share) for `seconds`, and report.

        Sources emit at most the offered rate. Records refused under backpressure count as pending until `inject` is
        called with another rate, as with the rate-limited source of StreamBed section 4: records not emitted at the old
        rate are dropped.

        Args:
            rate: records/s, above 0.
            seconds: duration; a multiple of the sample interval.
            phase: value of the samples' column `phase`.

        Raises:
            Disturbed: the testbed failed meanwhile; there is no window, and the run cannot be used any more.
        """
        ...

    def close(self) -> None:
        """Stop the job and free its resources; may be called twice."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@dataclass(frozen=True)
class Served:
    """The results of serving records from a durable log; arrays are float64[reporting intervals]."""

    seconds: float
    running_s: float
    """Time during which the job ran; the rest of the window it was down for a rescale."""
    arrived: np.ndarray
    """Records that arrived in the log in each interval, all sources."""
    read: np.ndarray
    """Records that the sources read from it in each interval."""
    lag: np.ndarray
    """Records that waited in it at the end of each interval."""
    activity: Mapping[str, Activity]
    """The activity of each operator while the job ran; empty if it was down all the time."""


@dataclass(frozen=True)
class Rescale:
    """A change of configuration in progress: the job is down until it is done."""

    downtime_s: float
    """Time from now until the job reads again, seconds."""
    state_mb: float
    """State to save and restore, MiB."""


class ElasticRun(Run, Protocol):
    """A deployed job that reads from a durable log, and can be rescaled while records keep arriving."""

    @property
    def configuration(self) -> Configuration:
        """The current configuration, or the next one while the job is down."""
        ...

    def serve(self, rate: float, seconds: float) -> Served:
        """Let `rate` records/s arrive (split by the sources' rate_share) for `seconds`.

        Unlike with `inject`, unread records stay in the log, across rates and rescales. While there is lag the sources read
        as fast as they can. Downtime of the job passes here, too.

        Args:
            rate: records/s, 0 or more.
            seconds: duration; a multiple of the reporting interval.

        Raises:
            Disturbed: as for `inject`.
        """
        ...

    def rescale(self, configuration: Configuration) -> Rescale:
        """Stop with a savepoint and start again with another configuration; state and lag are kept.

        Raises:
            InvalidInput: the configuration does not fit the job.
            Infeasible: it does not fit the testbed; the job continues unchanged.
        """
        ...


class Testbed(Protocol):
    """A testbed, on which a job can be measured."""

    @property
    def name(self) -> str: ...

    @property
    def limits(self) -> Limits: ...

    @property
    def cluster(self) -> Cluster:
        """The workers that tasks of operators other than sources are placed on."""
        ...

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> Run:
        """Start the job. Where the testbed can rescale, the run is an `ElasticRun`.

        Args:
            run: value of the samples' column `run`.
            seed: of all random choices in this run; the same seed repeats the same run.

        Raises:
            InvalidInput: the configuration does not fit the job (a missing operator, a task count below 1).
            Infeasible: it does not fit the testbed (more slots than it has, memory too small to start).
        """
        ...
