"""A cell of the arena: one job under one workload and one policy, with one seed; and its result.

Both are plain data, so that a cell can be computed in another process or on another machine.
"""

from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import pyarrow as pa
from pydantic import Field, JsonValue, model_validator

from models.cluster import Cluster
from models.job import Job
from models.metrics import SAMPLE_INTERVAL_S
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt, Ratio
from pipelines.arena.replays.workloads import Workload
from pipelines.arena.request import BURN_IN_MINUTES, LEAST_BETWEEN_S, SEED, RescaleMode, StartSize

MINUTE_S: Final = 60.0
HOUR_S: Final = 3600.0


def _least_between_s(given: dict[str, Any]) -> float:
    return LEAST_BETWEEN_S[given.get("rescale_mode", "in-place")]


class Cell(Format):
    """All inputs of the outcome, except the code."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: Job
    cluster: Cluster = Field(description="Its slots are for the tasks of all operators, sources included.")
    workload: Workload
    policy: Name = Field(description="One of the registered scaling policies.")
    settings: dict[str, JsonValue] = Field(default_factory=dict, description="Settings of the policy, by name.")
    placement: Literal["evenly", "caps"] = Field("evenly", description="Placement of the tasks of a deployment.")
    managed_memory_mb: Positive | None = Field(
        None, description="Managed memory of one task at the start, MiB; the even share of its TaskManager's if absent."
    )
    rescale_mode: RescaleMode = Field("in-place", description="How a rescale is made, which decides its downtime.")
    start: StartSize = Field(
        "well", description="Size of the initial deployment, compared with what the first rate needs."
    )
    burn_in_s: NonNegative = Field(
        BURN_IN_MINUTES * MINUTE_S,
        description="Time at the beginning that no metric counts, seconds; a multiple of the reporting interval.",
    )
    least_between_s: NonNegative = Field(
        default_factory=_least_between_s,
        description="Shortest time from the end of a rescale to the next one, seconds; the same for all policies.",
    )
    seed: int = Field(SEED, ge=0, description="Seed of all random choices in the testbed.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.burn_in_s % SAMPLE_INTERVAL_S:
            raise ValueError(
                f"burn_in_s must be a multiple of the reporting interval of {SAMPLE_INTERVAL_S:g} s, but got "
                f"{self.burn_in_s:g}"
            )
        if self.burn_in_s >= self.workload.seconds:
            raise ValueError(
                f"burn_in_s must be shorter than the workload of {self.workload.seconds:g} s, but got {self.burn_in_s:g}"
            )
        return self


class RescaleRecord(Format):
    """A rescale, or a decision that the cluster refused."""

    time_s: NonNegative = Field(description="When it was decided, seconds since the start.")
    downtime_s: NonNegative = Field(description="How long the job read nothing; 0 if it was refused.")
    state_mb: NonNegative = Field(description="State that was saved and restored, MiB.")
    tasks: PositiveInt = Field(description="Tasks of all operators in the intended deployment.")
    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator in the intended deployment.")
    memory_mb: dict[str, NonNegative] = Field(
        description="Managed memory of one task of each operator in the intended deployment, MiB."
    )
    reason: str = Field(description="The policy's reason, in words.")
    note: str | None = Field(
        None, description="What the cluster did not grant, or why it refused the decision, in words."
    )
    refused: bool = Field(False, description="Whether the decision was refused and the job continued unchanged.")


class Convergence(Format):
    """How the policy came to rest after a lasting change of the rate."""

    change_s: NonNegative = Field(description="When the rate changed.")
    rate: NonNegative = Field(description="The rate from then on, records/s.")
    seconds: NonNegative | None = Field(
        description="Time from the change until the job ran with its final tasks; null if it never settled."
    )
    steps: int = Field(ge=0, description="Rescales from the change to the next one.")


class ReplayOutcome(Format):
    """Metrics of section 5.1 of the evaluation of autoscalers, and attainment. All but `convergences` count from the end of
    the burn-in; latencies are those of records that arrived from then on."""

    latency_p50_s: NonNegative | None = Field(description="Median over records; null if none arrived.")
    latency_p95_s: NonNegative | None = Field(description="95th percentile over records.")
    within_1_s: Ratio | None = Field(description="Share of records that waited at most 1 s; null if none arrived.")
    within_10_s: Ratio | None = Field(description="Share of records that waited at most 10 s.")
    within_60_s: Ratio | None = Field(description="Share of records that waited at most 60 s.")
    input_rate: NonNegative = Field(description="Records that arrived per second, mean.")
    throughput: NonNegative = Field(description="Records read per second, mean.")
    throughput_ratio: NonNegative | None = Field(description="Records read per record that arrived.")
    most_lag: NonNegative = Field(description="Largest lag, records.")
    last_lag: NonNegative = Field(description="Lag at the end, records.")
    task_hours: NonNegative = Field(description="Tasks of all operators over time, task-hours.")
    memory_gib_hours: NonNegative = Field(description="Memory of all tasks over time, GiB-hours.")
    most_tasks: PositiveInt = Field(description="Most tasks at a time.")
    rescales: int = Field(ge=0, description="Scaling actions.")
    refusals: int = Field(ge=0, description="Decisions that the cluster could not deploy.")
    held_back: int = Field(ge=0, description="Recommendations ignored because the last rescale was too recent.")
    downtime_s: NonNegative = Field(description="Time in which the job read nothing because of rescales.")
    convergences: tuple[Convergence, ...] = Field((), description="One entry for each lasting change of the rate.")

    @property
    def convergence_s(self) -> float | None:
        """Mean time to converge; None if it did not always converge, or there were no lasting changes."""
        known = [c.seconds for c in self.convergences if c.seconds is not None]
        return sum(known) / len(known) if known and len(known) == len(self.convergences) else None

    @property
    def convergence_steps(self) -> int:
        """Rescales after all lasting changes."""
        return sum(c.steps for c in self.convergences)


TRACE_SCHEMA = pa.schema(
    [
        pa.field("time_s", pa.float64(), nullable=False),
        pa.field("running_s", pa.float64(), nullable=False),
        pa.field("rate", pa.float64(), nullable=False),
        pa.field("read_rate", pa.float64(), nullable=False),
        pa.field("lag_records", pa.float64(), nullable=False),
        pa.field("latency_s", pa.float64(), nullable=False),
        pa.field("tasks", pa.int64(), nullable=False),
        pa.field("memory_mb", pa.float64(), nullable=False),
        pa.field("capacity", pa.float64()),
        pa.field("parallelism", pa.map_(pa.string(), pa.int64()), nullable=False),
    ]
)
"""One row per reporting interval: its end, seconds of it that the job ran, records/s that arrived and were read, lag at the
end and how long the next record has waited (s), tasks and memory of all operators (MiB), the capacity of the tasks
according to the policy's interval (records/s; null until it is known), and tasks by operator."""


@dataclass(frozen=True)
class CellResult:
    """The result of a cell."""

    outcome: ReplayOutcome
    rescales: tuple[RescaleRecord, ...]
    trace: pa.Table
    """With TRACE_SCHEMA."""
