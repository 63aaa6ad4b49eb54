"""One measured point of the capacity of a job."""

from pydantic import Field

from models.capacity.diagnosis.bound_by import BoundBy
from models.capacity.diagnosis.facts import BoundFacts
from models.schema import Format, NonNegative, Positive, PositiveInt


class Budget(Format):
    """What a configuration may use: StreamBed's (Pi, M).

    Task slots are those of all operators but the sources, sinks included (StreamBed section 8.1). Memory is that of one
    TaskManager, so that it can be asked of a cluster as it stands; per slot it is memory_mb / slots_per_worker.
    """

    task_slots: PositiveInt
    memory_mb: Positive = Field(description="Memory of one TaskManager, MiB.")


class OperatorRates(Format):
    """What BIDS2 needs of an operator (StreamBed Table 1)."""

    name: str
    true_rate_per_task: Positive = Field(description="o^i: records/s of useful time of one task.")
    records_in_per_source_record: NonNegative = Field(description="r^i.")


class Observation(Format):
    """A budget, the configuration it was given, and the MST that was measured with it."""

    run: str = Field(description="Run whose samples show it; also the key under which it is kept.")
    task_slots: PositiveInt
    memory_mb: Positive = Field(description="Memory of one TaskManager, MiB.")
    parallelism: dict[str, PositiveInt] = Field(description="Tasks of each operator, sources included.")
    mst: Positive = Field(description="Maximal sustainable throughput, records/s at the sources.")
    operators: tuple[OperatorRates, ...] = Field(
        (), description="Rates seen at the MST; empty where they were not published."
    )
    bids2_rate: NonNegative | None = Field(
        None, description="Source rate that BIDS2 expected; None for a single-task run."
    )
    measured_s: NonNegative = Field(0.0, description="Time the measurement took on the testbed, seconds.")
    samples_digest: str | None = Field(
        None, description="SHA-256 of the file with the samples of `run`, in hex; None for published measurements."
    )

    # Omitted if absent, so that digests of older observations stay the same.
    facts: BoundFacts | None = Field(
        None,
        exclude_if=lambda facts: facts is None,
        description="How busy its tasks were at the limit; absent for published measurements and in older observations.",
    )
    bound_by: BoundBy | None = Field(
        None,
        exclude_if=lambda bound: bound is None,
        description="What bounded it, by those facts; absent without them.",
    )

    @property
    def budget(self) -> Budget:
        return Budget(task_slots=self.task_slots, memory_mb=self.memory_mb)
