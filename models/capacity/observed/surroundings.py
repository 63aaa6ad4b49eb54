"""What is known of a running job beside its counters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.capacity.observed.record import Checkpoints
from models.dataflow import Partitioning


@dataclass(frozen=True)
class VertexLink:
    """An edge between two vertices, by their ids."""

    upstream: str
    downstream: str
    partitioning: Partitioning


@dataclass(frozen=True)
class Surroundings:
    """What is known of a running job beside its counters."""

    name: str
    id: str
    edges: Sequence[VertexLink]
    checkpoints: Checkpoints | None = None
    state_bytes: Mapping[str, float] = field(default_factory=dict)
    """By vertex id, of the last checkpoint."""
    watermark_lag_s: float | None = None
    cores: Mapping[str, float] = field(default_factory=dict)
    """Of each TaskManager that has cores to itself."""
    lag_by_broker: bool = False
    """Whether what waits was counted by the broker, and not by the sources."""
    failures: Sequence[str] = ()
    """Causes of its failures while it was observed, the newest first."""
    takes_checkpoints: bool = True
    counts_off: str | None = None
    """Settings that would make the state backend count accesses to state; None where it has no such settings."""
    silent: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Partitions of which nothing was read since the job started, by id of the source's vertex."""
