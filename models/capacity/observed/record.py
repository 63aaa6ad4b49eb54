"""What was observed of a running job. What Flink does not report is null, and a remark says why."""

from typing import Literal

from pydantic import Field

from models.capacity.diagnosis.bound_by import BoundBy
from models.plan.parts import Interval
from models.schema import SCHEMA_VERSION, Format, NonNegative, Positive, PositiveInt, Ratio


class ObservedVertex(Format):
    """A vertex of the running job."""

    id: str = Field(description="Flink's.")
    name: str = Field(description="Flink's; where two have the same or it is long, with the start of its id, and cut.")
    name_is_flinks: bool = Field(True, exclude=True, description="Whether `name` is exactly Flink's; not written.")
    operators: tuple[str, ...] = Field(description="Those that Flink chained in it.")
    parallelism: PositiveInt = Field(description="Its tasks.")
    max_parallelism: PositiveInt = Field(description="Most tasks that Flink allows; also its key groups.")
    slot_group: str = Field(description="Tasks of the same group may share a slot.")
    state: Literal["running", "finished", "starting"] = Field(description="Finished: all of its input was bounded.")
    observed_rate: NonNegative | None = Field(
        description="Records/s into all of its tasks; records/s emitted at a source."
    )
    true_rate: Positive | None = Field(description="Records/s in of useful time of one task (DS2 Eq. 1), mean.")
    saturated_rate: Interval | None = Field(
        None,
        description="The same of a task that is busy all the time, with its 95 % interval: the true rate as it was seen, and "
        "by how much it changes with the load.",
    )
    busyness: Ratio | None = Field(description="Mean over its tasks.")
    fullest_busyness: Ratio | None = Field(description="Of the busiest task.")
    backpressure: Ratio | None = Field(description="Mean over its tasks.")
    selectivity: NonNegative | None = Field(description="Records out per record in.")
    fullest_share: Ratio | None = Field(description="Share of its records that the fullest task gets.")
    bytes_out: NonNegative | None = Field(description="Bytes/s sent to other tasks.")
    state_bytes: NonNegative | None = Field(description="In the last checkpoint, bytes.")
    state_read: NonNegative | None = Field(
        None, description="State that its tasks read, bytes/s; null where the state backend does not count it."
    )
    state_written: NonNegative | None = Field(None, description="The same, written.")
    cache_hit_rate: Ratio | None = Field(None, description="Share of the blocks of state that were in memory.")
    partitions: PositiveInt | None = Field(description="Partitions that a source reads.")


class ObservedWorker(Format):
    """A TaskManager that runs tasks of the job."""

    name: str = Field(description="Its id in Flink.")
    cores: NonNegative | None = Field(description="CPU that its JVM used, cores.")
    gc_share: Ratio | None = Field(description="Share of the time in garbage collection.")
    heap_used: Ratio | None = Field(description="Of its heap, at the end.")


class ObservedCapacity(Format):
    """How far the job would go as it is deployed."""

    mst: Interval = Field(description="Records/s at the sources together.")
    seen: bool = Field(description="Whether it ran at this rate, with records waiting; false: computed from busyness.")
    reason: str = Field(min_length=1, description="What it rests on, in words.")


class Checkpoints(Format):
    """The last completed checkpoint."""

    state_bytes: NonNegative = Field(description="Of all tasks.")
    duration_s: NonNegative = Field(description="From its trigger to its end.")
    age_s: NonNegative = Field(description="Since it was triggered.")


class SuspectedLimit(Format):
    """A limit outside Flink that a vertex seems to wait for."""

    vertex: str = Field(min_length=1, description="The one that waits.")
    rate_limit: Positive = Field(description="Records/s into all its tasks together, as they were taken.")
    certainty: Literal["possible", "likely"] = Field(
        description="likely: another number of tasks took the same; possible: only one was seen, or others are unclear."
    )
    evidence: tuple[str, ...] = Field(min_length=1, description="What points to it, in words with figures.")
    unclear: tuple[str, ...] = Field(description="What else would look the same.")

    @property
    def job_file_line(self) -> str:
        """What states it in the job's file."""
        return f"rate_limit: {self.rate_limit:.10g}"


class ObservedJob(Format):
    """A running job as it was seen for some time."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: str = Field(description="Its name in Flink.")
    id: str = Field(description="Its id in Flink.")
    observed_s: NonNegative = Field(description="Time between the first and the last reading.")
    restarts: int = Field(ge=0, description="While it was observed.")
    vertices: tuple[ObservedVertex, ...] = Field(description="In topological order.")
    consumed_rate: NonNegative | None = Field(description="Records/s that all sources emitted.")
    arriving_rate: NonNegative | None = Field(
        description="Records/s that arrived: consumption plus growth of the lag; null where sources are held back and "
        "report no lag."
    )
    lag_records: NonNegative | None = Field(description="Records that wait before the sources, at the end.")
    lag_growth: float | None = Field(allow_inf_nan=False, description="Records/s by which that grows.")
    watermark_lag_s: float | None = Field(
        allow_inf_nan=False,
        description="How far the watermark of the slowest vertex is behind the clock; null without one.",
    )
    bound_by: BoundBy = Field(description="What bounds it now or, where nothing does, what would at a higher rate.")
    capacity: ObservedCapacity | None = Field(description="Null where not all vertices report how busy they are.")
    suspected_limit: SuspectedLimit | None = Field(
        None,
        exclude_if=lambda limit: limit is None,
        description="A limit of what it writes to or calls, if the vertex that binds seems to wait for one.",
    )
    checkpoints: Checkpoints | None = Field(description="Null where none was completed.")
    workers: tuple[ObservedWorker, ...] = Field(description="The TaskManagers that run its tasks.")
    remarks: tuple[str, ...] = Field(description="What is unknown and why, restarts, and finished vertices.")
