"""The facts that a diagnosis rests on, at one source rate: measured there, or computed for a plan.

Notation, of operator i with p_i tasks at the source rate lambda:

    b_i     busyness: mean over its tasks of the share of time busy
    f_i     busyness of its fullest task
    m_i     mean over short intervals of the busyness of the task that is busiest in each: f_i unless a hot key moves
    h_i     share of the records that go to one task beside its even share: the fullest task's is h_i + (1 - h_i) / p_i
    w_i     work: busyness of all tasks together, were a record as slow everywhere as it is for the fullest task;
            m_i = w_i (h_i + (1 - h_i) / p_i), so that w_i = b_i p_i where h_i is all that is uneven

A busyness above 1 belongs to a rate that the tasks cannot take. What is unknown is None.
"""

from typing import Final

from pydantic import Field

from models.plan.parts import Interval
from models.schema import Format, Label, NonNegative, Positive, PositiveInt, Ratio

HELD_BACK: Final = 0.2
"""Backpressure from which the tasks of an operator are busy in turns because of what is downstream."""


class OperatorFacts(Format):
    """What is known of one operator."""

    name: Label = Field(description="Operator of the job.")
    parallelism: PositiveInt = Field(description="Tasks.")
    upstream: tuple[Label, ...] = Field((), description="Operators that send to it.")
    is_source: bool = Field(False, description="Whether it is a source.")
    keyed: bool = Field(False, description="Whether records are hash-partitioned to it.")
    windowed: bool = Field(False, description="Whether it groups records in windows of time.")
    most_tasks: PositiveInt | None = Field(None, description="Most tasks it may have; null without a limit.")
    key_groups: PositiveInt | None = Field(None, description="Flink's maximum parallelism; null where it has no keys.")
    busyness: NonNegative | None = Field(None, description="Mean over tasks of the share of time busy.")
    fullest_busyness: NonNegative | None = Field(None, description="Share of time busy of the busiest task.")
    peak_busyness: NonNegative | None = Field(
        None, description="Mean over intervals of the share of time busy of the task that is busiest in each."
    )
    backpressure: Ratio | None = Field(None, description="Mean over tasks of the share of time backpressured.")
    state_share: Ratio | None = Field(None, description="Share of its busy time in which it waits for state.")
    cache_hit_rate: Ratio | None = Field(None, description="State reads answered from memory; null without reads.")
    fullest_share: Interval | None = Field(
        None, description="Share of the records of the fullest task, counted or from its keys."
    )

    @property
    def held_busyness(self) -> float | None:
        """The busyness that saturates first: m_i, or f_i where it is held back from downstream."""
        held_back = self.backpressure is not None and self.backpressure > HELD_BACK
        order = (
            (self.fullest_busyness, self.busyness)
            if held_back
            else (self.peak_busyness, self.fullest_busyness, self.busyness)
        )
        return next((known for known in order if known is not None), None)

    @property
    def unevenness(self) -> float | None:
        """That busyness over the mean of all tasks; None where one is unknown or nothing is done."""
        return self.held_busyness / self.busyness if self.held_busyness is not None and self.busyness else None

    @property
    def hot_share(self) -> float:
        """h_i; 0 for a single task and where it is unknown.

        It is not more than the share of the records says, where that is known and no hot key moves: what a task is busier
        beyond that is the time of a record on its machine.
        """
        if self.unevenness is None or self.parallelism == 1:
            return 0.0
        moves = (self.peak_busyness or 0.0) > (self.fullest_busyness or 0.0)
        by_records = 1.0 if self.fullest_share is None or moves else self.fullest_share.value
        even = 1 / self.parallelism
        return min(max((min(self.unevenness * even, by_records) - even) / (1 - even), 0.0), 1.0)

    @property
    def work(self) -> float | None:
        """w_i; None where it is unknown."""
        held = self.held_busyness
        return None if held is None else held / (self.hot_share + (1 - self.hot_share) / self.parallelism)


class BoundFacts(Format):
    """What is known of a job at one source rate."""

    rate: Positive = Field(description="Records/s that the sources emit together.")
    measured: bool = Field(description="Whether it was measured at that rate; false: computed for it.")
    operators: tuple[OperatorFacts, ...] = Field(min_length=1, description="Sources included.")
    cores_use: NonNegative | None = Field(None, description="CPU that the fullest worker's tasks use, of its cores.")
    network_use: NonNegative | None = Field(None, description="Of the fullest worker's outbound bandwidth.")
    network_vertex: Label | None = Field(None, description="The operator that sends most of that.")

    def operator(self, name: str) -> OperatorFacts:
        return next(o for o in self.operators if o.name == name)

    def with_operators(self, changed: "dict[str, OperatorFacts]") -> "BoundFacts":
        """The same with other facts of some operators."""
        return self.model_copy(update={"operators": tuple(changed.get(o.name, o) for o in self.operators)})

    def upstream_backpressure(self, operator: OperatorFacts) -> float | None:
        """The most of the operators that send to it; None where none is known."""
        known = [o.backpressure for o in self.operators if o.name in operator.upstream]
        return max((one for one in known if one is not None), default=None)
