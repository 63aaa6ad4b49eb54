"""A cell of the arena: one job under one workload and one policy, with one seed; and what came of it.

Both are plain data, so that a cell can be computed in another process or on another machine.
"""

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
from pydantic import Field, JsonValue

from models.cluster import Cluster
from models.job import Job
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt
from pipelines.arena.replays.workloads import Workload
from pipelines.arena.request import SEED

MINUTE_S = 60.0


class Cell(Format):
    """All that the outcome depends on, but the code."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: Job
    cluster: Cluster = Field(description="Its slots are for the tasks of all operators, sources included.")
    workload: Workload
    policy: Name = Field(description="One of the registered scaling policies.")
    settings: dict[str, JsonValue] = Field(default_factory=dict, description="Settings of the policy, by name.")
    placement: Literal["evenly", "caps"] = Field("evenly", description="What places the tasks of a deployment.")
    managed_memory_mb: Positive | None = Field(
        None, description="Managed memory of one task at the start, MiB; the even share of its TaskManager's if absent."
    )
    seed: int = Field(SEED, ge=0, description="Of everything random in the testbed.")


class RescaleRecord(Format):
    """A rescale, or a decision that the cluster refused."""

    time_s: NonNegative = Field(description="When it was decided, seconds since the start.")
    downtime_s: NonNegative = Field(description="How long the job read nothing; 0 where it was refused.")
    state_mb: NonNegative = Field(description="State that was saved and restored, MiB.")
    tasks: PositiveInt = Field(description="Tasks of all operators in what was to be deployed.")
    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator in it.")
    memory_mb: dict[str, NonNegative] = Field(description="Managed memory of a task of each operator in it, MiB.")
    reason: str = Field(description="The policy's, in words.")
    note: str | None = Field(None, description="What the cluster did not grant, or why it refused, in words.")
    refused: bool = Field(False, description="Whether the job ran on as it was.")


class Convergence(Format):
    """How the policy came to rest after a lasting change of the rate."""

    change_s: NonNegative = Field(description="When the rate changed.")
    rate: NonNegative = Field(description="The rate from then on, records/s.")
    seconds: NonNegative | None = Field(
        description="From the change until the job ran with the tasks that stayed; null where they never stayed."
    )
    steps: int = Field(ge=0, description="Rescales from the change to the next one.")


class ReplayOutcome(Format):
    """Metrics of section 5.1 of the evaluation of autoscalers."""

    latency_p50_s: NonNegative | None = Field(description="Median over records; null where none came in.")
    latency_p95_s: NonNegative | None = Field(description="95th percentile over records.")
    input_rate: NonNegative = Field(description="Records that came in per second, mean.")
    throughput: NonNegative = Field(description="Records read per second, mean.")
    throughput_ratio: NonNegative | None = Field(description="Records read per record that came in.")
    most_lag: NonNegative = Field(description="Most records that waited.")
    last_lag: NonNegative = Field(description="Records that waited at the end.")
    task_minutes: NonNegative = Field(description="Tasks of all operators over time, task-minutes.")
    memory_mb_minutes: NonNegative = Field(description="Memory of all tasks over time, MiB-minutes.")
    most_tasks: PositiveInt = Field(description="Most tasks at a time.")
    rescales: int = Field(ge=0, description="Scaling actions.")
    refusals: int = Field(ge=0, description="Decisions that the cluster could not deploy.")
    downtime_s: NonNegative = Field(description="Time in which the job read nothing, for rescales.")
    convergences: tuple[Convergence, ...] = Field((), description="One for each lasting change of the rate.")

    @property
    def convergence_s(self) -> float | None:
        """Mean time to converge; None where it did not always, or the rate never changed for long."""
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
"""One row a reporting interval: its end, seconds of it that the job ran, records/s that came in and were read, records
that wait at the end and how long the next one has (s), tasks and memory of all operators (MiB), the rate that the tasks
could take by what the policy's interval showed (records/s; null until it is known), and tasks by operator."""


@dataclass(frozen=True)
class CellResult:
    """What came of a cell."""

    outcome: ReplayOutcome
    rescales: tuple[RescaleRecord, ...]
    trace: pa.Table
    """With TRACE_SCHEMA."""
