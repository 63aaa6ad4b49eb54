"""A job of the catalogue: its logical operators, what a record costs each of them, and how they are joined.

Costs are those of one record with the state in memory and an idle worker; testbeds measure (the simulator models) what
contention, cache misses and skew add.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from models.dataflow import Edge, Partitioning, topological_order
from models.errors import InvalidInput
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt, Ratio
from models.vertices import JobVertex, check_vertices, deployed_vertices


class Kind(StrEnum):
    """Position in the dataflow: sources have no input, sinks no output."""

    SOURCE = "source"
    OPERATOR = "operator"
    SINK = "sink"


class Cost(Format):
    """Unit costs of an operator (CAPSys section 5.1, here per record *in*; per record generated at a source)."""

    cpu_s: Positive = Field(description="CPU seconds per record in.")
    external_wait_s: NonNegative = Field(
        0.0,
        exclude_if=lambda wait: wait == 0,
        description="Seconds per record in that its task waits for something outside the job, without CPU time: a synchronous "
        "call of a service.",
    )
    state_read_bytes: NonNegative = Field(0.0, description="State bytes read per record in.")
    state_write_bytes: NonNegative = Field(0.0, description="State bytes written per record in.")
    bytes_out: NonNegative = Field(0.0, description="Bytes emitted per record *out*.")

    @property
    def thread_s(self) -> float:
        """Seconds of a task per record in, with the state in memory and the worker idle."""
        return self.cpu_s + self.external_wait_s


class WindowKind(StrEnum):
    """How records are grouped in time."""

    TUMBLING = "tumbling"
    SLIDING = "sliding"
    SESSION = "session"


class Window(Format):
    """A windowed operator keeps records and emits when the window fires, in a burst."""

    kind: WindowKind = Field(description="tumbling, sliding or session.")
    length_s: Positive = Field(description="Length of the window; the inactivity gap of a session window.")
    slide_s: Positive | None = Field(None, description="Distance of two firings of a sliding window, seconds.")
    fire_share: Ratio = Field(0.0, description="Share of the operator's CPU cost that is spent when windows fire.")

    @model_validator(mode="after")
    def _check(self) -> "Window":
        if (self.kind is WindowKind.SLIDING) != (self.slide_s is not None):
            raise ValueError("'slide_s' must be given for a sliding window, and only there")
        if self.slide_s is not None and self.slide_s > self.length_s:
            raise ValueError(
                f"slide_s <= length_s must hold, but got (slide_s={self.slide_s}, length_s={self.length_s})"
            )
        return self

    @property
    def firing_interval_s(self) -> float | None:
        """Seconds between two firings; None for session windows, which fire key by key."""
        return {WindowKind.TUMBLING: self.length_s, WindowKind.SLIDING: self.slide_s, WindowKind.SESSION: None}[
            self.kind
        ]


class Keys(Format):
    """How the keys of a hash-partitioned input are distributed; skew comes from here.

    Of the records, `hot_share` carry the key that is hot at the moment; the others are spread evenly over `distinct`
    keys. Another key becomes hot every `hot_period_records` records in, or every `hot_period_s` seconds where the key is
    itself a window of time.
    """

    distinct: PositiveInt = Field(description="Distinct keys that are active at once.")
    lifetime_records: Positive | None = Field(
        None, description="Records in after which the active keys have been replaced by others; None: they stay."
    )
    hot_share: Ratio = Field(0.0, description="Share of records that carry a hot key.")
    hot_period_records: Positive | None = Field(None, description="Records in after which another key becomes hot.")
    hot_period_s: Positive | None = Field(None, description="Seconds after which another key becomes hot.")

    @model_validator(mode="after")
    def _check(self) -> "Keys":
        periods = [p for p in (self.hot_period_records, self.hot_period_s) if p is not None]
        if len(periods) != (self.hot_share > 0):
            raise ValueError(
                "where 'hot_share' is above 0, and only there, exactly one of 'hot_period_records' and 'hot_period_s' "
                f"must be given, but hot_share is {self.hot_share:g} and {len(periods)} of them are given"
            )
        return self


class State(Format):
    """Keyed state of an operator: how much is live, and how much of it is read again."""

    bytes_per_record: NonNegative = Field(0.0, description="State bytes a record adds while its window (or ttl) lasts.")
    bytes_per_key: NonNegative = Field(0.0, description="State bytes an active key holds.")
    hot_set_ratio: Ratio = Field(1.0, description="Share of the live state that reads touch (the working set).")
    ttl_s: Positive | None = Field(None, description="How long state lives without a window, seconds.")


class Operator(Format):
    """A vertex of the logical dataflow."""

    name: Name = Field(description="Unique within the job.")
    kind: Kind = Field(Kind.OPERATOR, description="source, operator or sink.")
    description: str = Field("", description="What it does, in a sentence.")
    flink_name: str | None = Field(
        None,
        min_length=1,
        max_length=10_000,
        exclude_if=lambda name: name is None,
        description="What Flink calls it in the running job, if not `name`: the exact name of the operator or of its vertex, "
        "or the vertex's id where several have the same name.",
    )
    cost: Cost = Field(description="What a record costs.")
    selectivity: NonNegative = Field(
        1.0,
        description="Records out per record in; at sources, per record that they read, which the source rate counts.",
    )
    rate_share: Positive = Field(1.0, le=1.0, description="Sources only: share of the job's source rate that it reads.")
    window: Window | None = Field(None, description="If it groups records in time.")
    keys: Keys | None = Field(None, description="How its input's keys are distributed, if that is hash-partitioned.")
    state: State | None = Field(None, description="If it keeps keyed state.")
    max_parallelism: PositiveInt | None = Field(
        None, description="Most tasks; at sources, the partitions of their topics."
    )
    topics: tuple[Annotated[str, Field(min_length=1, max_length=249)], ...] = Field(
        (),
        exclude_if=lambda topics: not topics,
        description="Sources only: Kafka topics that it reads. Where `brokers` of the job or --kafka name a broker, plans ask "
        "it for their partitions, which are then `max_parallelism`.",
    )
    rate_limit: Positive | None = Field(
        None,
        exclude_if=lambda limit: limit is None,
        description="Most records/s into all its tasks together that what it writes to or calls takes: the quota of a sink or "
        "of a service. It bounds plans, and is not seen while measuring.",
        json_schema_extra={"unit": "records/s"},
    )
    figures_from: str = Field(min_length=1, description="Source of the figures; 'assumed: ...' for assumptions.")


class Job(Format):
    """One file of the catalogue."""

    OUTSIDE_DIGEST: ClassVar[Mapping[str, Any] | None] = {
        "operators": {"__all__": {"flink_name", "rate_limit", "topics"}},
        "vertices": True,
    }
    """What changes no measurement."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    name: Name = Field(description="Also the name of the file, without its ending.")
    description: str = Field(min_length=1, description="What the query computes, in a sentence or two.")
    figures_from: str = Field(min_length=1, description="Source of the job's figures: paper, section, table, data set.")
    sql: Name | None = Field(None, description="The SQL file beside this one, if the job is SQL.")
    key_groups: PositiveInt | None = Field(
        None,
        le=32768,
        description="Flink's maximum parallelism: keys are hashed to these groups, groups to tasks. None: as Flink "
        "chooses for each operator, the power of two from 1.5 x its parallelism up, at least 128, at most 32768.",
    )
    memory_levels_mb: tuple[Positive, ...] = Field(
        (),
        description="TaskManager memory sizes worth measuring with, MiB; all that the testbed has where none is given.",
    )
    operators: tuple[Operator, ...] = Field(min_length=2, description="A source and a sink at least.")
    edges: tuple[Edge, ...] = Field(min_length=1, description="How they are joined.")
    # Omitted if absent, so that digests of jobs without it stay the same.
    vertices: tuple[JobVertex, ...] = Field(
        (),
        exclude_if=lambda vertices: not vertices,
        description="The vertices that Flink deploys: chained operators, and groups that share slots. An operator that is "
        "not listed is a vertex of its own. Absent: plans give each task a slot of its own.",
    )

    @model_validator(mode="after")
    def _check(self) -> "Job":
        topological_order([o.name for o in self.operators], self.edges)
        check_vertices(self.vertices, [o.name for o in self.operators], self.edges)
        has_input = {e.downstream for e in self.edges}
        has_output = {e.upstream for e in self.edges}
        for o in self.operators:
            if (o.kind is Kind.SOURCE) == (o.name in has_input):
                rule = "a source must have no incoming edge" if o.kind is Kind.SOURCE else "needs an incoming edge"
                raise ValueError(f"operator {o.name!r} ({o.kind}): {rule}; fix its kind or the edges")
            if o.topics and o.kind is not Kind.SOURCE:
                raise ValueError(
                    f"operator {o.name!r} ({o.kind}): only sources read 'topics'; remove them, or fix its kind"
                )
            if o.kind is Kind.SOURCE and o.selectivity == 0:
                raise ValueError(f"source {o.name!r} must emit records: its selectivity must be above 0, but is 0")
            if (o.kind is Kind.SINK) == (o.name in has_output):
                rule = "a sink must have no outgoing edge" if o.kind is Kind.SINK else "needs an outgoing edge"
                raise ValueError(f"operator {o.name!r} ({o.kind}): {rule}; fix its kind or the edges")
        total = sum(o.rate_share for o in self.sources)
        if abs(total - 1.0) > 1e-6:
            raise ValueError(f"the rate_share of the sources must sum to 1, but they sum to {total:g}")
        return self

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Operator names in topological order."""
        return tuple(topological_order([o.name for o in self.operators], self.edges))

    @property
    def deployed_vertices(self) -> tuple[JobVertex, ...]:
        """All vertices with their groups, in topological order; an operator that no vertex lists is one of its own."""
        return deployed_vertices(self.vertices, self.order)

    @property
    def flink_names(self) -> dict[str, str]:
        """What Flink calls the operators that have another name there."""
        return {o.name: o.flink_name for o in self.operators if o.flink_name is not None}

    @property
    def sources(self) -> tuple[Operator, ...]:
        return tuple(o for o in self.operators if o.kind is Kind.SOURCE)

    @property
    def scaled_operators(self) -> tuple[Operator, ...]:
        """All but the sources (sinks included), in topological order: the operators that StreamBed's task slots count."""
        return tuple(self.operator(name) for name in self.order if self.operator(name).kind is not Kind.SOURCE)

    @property
    def max_parallelism(self) -> dict[str, int]:
        """Most tasks of the operators that are limited, sources aside."""
        return {o.name: most for o in self.scaled_operators if (most := self.most_tasks(o.name)) is not None}

    def most_tasks(self, name: str) -> int | None:
        """Most tasks of an operator: its own limit, or the job's key groups where it has keys; None without a limit."""
        hashed = any(e.partitioning is Partitioning.HASH for e in self.upstream_edges(name))
        limits = (self.operator(name).max_parallelism, self.key_groups if hashed else None)
        return min((limit for limit in limits if limit is not None), default=None)

    def operator(self, name: str) -> Operator:
        for o in self.operators:
            if o.name == name:
                return o
        raise InvalidInput(
            f"job {self.name!r} has no operator {name!r}; known operators: {', '.join(o.name for o in self.operators)}"
        )

    def upstream_edges(self, name: str) -> tuple[Edge, ...]:
        return tuple(e for e in self.edges if e.downstream == name)

    def downstream_edges(self, name: str) -> tuple[Edge, ...]:
        return tuple(e for e in self.edges if e.upstream == name)


def records_in_per_source_record(job: Job, selectivity: Mapping[str, float] | None = None) -> dict[str, float]:
    """r^i of StreamBed Table 1: records into each operator per record that the sources read together.

    Args:
        selectivity: measured records out per record in, by operator; the job's own where absent.
    """
    measured = selectivity or {}
    ratio: dict[str, float] = {}
    for name in job.order:
        operator = job.operator(name)
        if operator.kind is Kind.SOURCE:
            ratio[name] = operator.rate_share
            continue
        ratio[name] = sum(
            ratio[e.upstream] * e.share * _out_per_in(job.operator(e.upstream), measured)
            for e in job.upstream_edges(name)
        )
    return ratio


def _out_per_in(operator: Operator, measured: Mapping[str, float]) -> float:
    return measured.get(operator.name, operator.selectivity)
