"""The input of a scaling policy: edges, the target rates of the sources, and the metrics of each operator."""

from functools import cached_property, lru_cache
from typing import Literal, Self

from pydantic import Field, model_validator

from models.dataflow import Edge, Partitioning, topological_order
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt, Ratio


class OperatorMetrics(Format):
    """One operator over the last window. Rates are sums over its tasks (DS2 Eq. 5 and 6)."""

    parallelism: PositiveInt = Field(description="p_i: its tasks now.")
    true_processing_rate: Positive | None = Field(
        None, description="o_i[lambda_p]: records in per second of useful time. Required for all but sources."
    )
    true_output_rate: NonNegative | None = Field(
        None,
        description="o_i[lambda_o]: records out per second of useful time. Required if an edge leaves the operator.",
    )
    observed_input_rate: NonNegative | None = Field(
        None, description="o_i^[lambda_p]: records in per second of elapsed time; at sources, records read."
    )
    observed_output_rate: NonNegative | None = Field(
        None, description="o_i^[lambda_o]: records out per second of elapsed time."
    )
    busyness: Ratio | None = Field(None, description="Mean share of time its tasks are busy.")
    max_busyness: Ratio | None = Field(None, description="Share of time that its busiest task is busy.")
    backpressure: Ratio | None = Field(None, description="Mean share of time its tasks are backpressured.")
    idleness: Ratio | None = Field(None, description="Mean share of time its tasks wait for input.")
    input_queue_share: Ratio | None = Field(None, description="Share of its input buffers that is in use.")
    lag_records: NonNegative | None = Field(None, description="Sources: records due but not yet emitted.")
    in_flight_records: NonNegative | None = Field(
        None, description="Records sent to it that it has not taken yet, at the end; absent where that is unknown."
    )
    lag_change_per_s: float | None = Field(
        None, description="Sources: growth of the lag, records/s; below 0 while it shrinks."
    )
    cpu_cores: NonNegative | None = Field(None, description="CPU used by all its tasks, cores.")
    memory_mb: NonNegative | None = Field(None, description="Managed memory of one task, MiB.")
    cache_hit_rate: Ratio | None = Field(None, description="Share of state reads answered from memory.")
    state_latency_s: NonNegative | None = Field(
        None, description="Mean latency of a state access, seconds; absent where no state is kept."
    )
    state_mb: NonNegative | None = Field(None, description="State of all its tasks, MiB.")
    max_parallelism: PositiveInt | None = Field(None, description="Most tasks that it may have.")
    key_groups: PositiveInt | None = Field(
        None, description="Where its input is hash-partitioned: key groups (Flink's maximum parallelism)."
    )
    partitions: PositiveInt | None = Field(None, description="Sources: partitions that they read.")

    def at_most(self, tasks: int) -> int:
        """`tasks`, limited by its maximum parallelism, its key groups and its partitions."""
        return min(
            limit for limit in (tasks, self.max_parallelism, self.key_groups, self.partitions) if limit is not None
        )


class TaskManagerUse(Format):
    """Memory used inside the TaskManagers, mean over them and over the last window."""

    heap_mb: NonNegative = Field(description="JVM heap, MiB.")
    metaspace_mb: NonNegative = Field(description="JVM metaspace, MiB.")


class Rates(Format):
    """The input of one decision."""

    schema_version: Literal[1] = SCHEMA_VERSION
    edges: tuple[tuple[Name, Name], ...] = Field(min_length=1, description="[upstream, downstream] pairs.")
    source_rates: dict[Name, NonNegative] = Field(description="Rate at which each source must read, records/s.")
    source_selectivity: dict[Name, NonNegative] = Field(
        {},
        exclude_if=lambda known: not known,
        description="Records that a source emits per record that it reads; 1 where absent.",
    )
    edge_shares: dict[Name, dict[Name, NonNegative]] = Field(
        {},
        exclude_if=lambda known: not known,
        description="Records over an edge per record out of its upstream operator, by upstream and downstream operator: above "
        "1 where records are broadcast; 1 where absent.",
    )
    operators: dict[Name, OperatorMetrics] = Field(
        description="All operators but the sources; sources may be given too."
    )
    task_manager_use: TaskManagerUse | None = Field(None, description="Required if a policy tunes memory.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        order, sources = self.order, set(self.sources)
        for name in sources - self.source_rates.keys():
            raise ValueError(f"source {name!r} has no rate; add it to source_rates")
        for name in self.source_rates.keys() - sources:
            why = "has an incoming edge" if name in order else "is on no edge"
            raise ValueError(f"source_rates names {name!r}, which is no source: it {why}; remove it or fix the edges")
        for name in self.source_selectivity.keys() - sources:
            raise ValueError(f"source_selectivity names {name!r}, which is no source; remove it")
        divided = {(upstream, name) for upstream, shares in self.edge_shares.items() for name in shares}
        for upstream, downstream in divided - set(self.edges):
            edge = f"the edge from {upstream!r} to {downstream!r}"
            raise ValueError(f"edge_shares names {edge}, which is none of 'edges'; remove it or add the edge")
        for name in self.operators.keys() - set(order):
            raise ValueError(f"operator {name!r} is on no edge; add its edges or remove it")
        for name in order:
            if name not in sources:
                self._check_rates(name)
        return self

    def _check_rates(self, name: str) -> None:
        """An operator that is not a source must have its true rates."""
        metrics = self.operators.get(name)
        if metrics is None:
            raise ValueError(f"operator {name!r} is on an edge but not in 'operators'; add it")
        if metrics.true_processing_rate is None:
            raise ValueError(
                f"operator {name!r} has no true_processing_rate; measure it in a window where it does some work"
            )
        if metrics.true_output_rate is None and any(upstream == name for upstream, _ in self.edges):
            raise ValueError(f"operator {name!r} has an outgoing edge and no true_output_rate; add it")

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Operators in topological order, sources included; ties in the order of the edges."""
        return _order(self.edges)

    @cached_property
    def sources(self) -> tuple[str, ...]:
        """Operators without an incoming edge."""
        fed = {downstream for _, downstream in self.edges}
        return tuple(name for name in self.order if name not in fed)

    def sent(self, source: str) -> float:
        """Records/s that a source emits if it reads as it must (lambda_src of DS2 Eq. 8)."""
        return self.source_rates[source] * self.source_selectivity.get(source, 1.0)

    def share(self, upstream: str, downstream: str) -> float:
        """Records over an edge per record out of its upstream operator."""
        return self.edge_shares.get(upstream, {}).get(downstream, 1.0)

    def upstream(self, name: str) -> tuple[str, ...]:
        """Operators that send to `name`."""
        return self._upstream.get(name, ())

    @cached_property
    def _upstream(self) -> dict[str, tuple[str, ...]]:
        senders: dict[str, list[str]] = {}
        for upstream, downstream in self.edges:
            senders.setdefault(downstream, []).append(upstream)
        return {name: tuple(names) for name, names in senders.items()}


@lru_cache(maxsize=256)
def _order(edges: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Cached between intervals, since the edges of a job stay the same."""
    names = list(dict.fromkeys(name for edge in edges for name in edge))
    # How records are partitioned does not matter to the order of operators.
    joined = [Edge(upstream=a, downstream=b, partitioning=Partitioning.REBALANCE) for a, b in edges]
    return tuple(topological_order(names, joined))
