"""The curves of a replay over time, with no more points than a screen can show."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from models.metrics import SAMPLE_INTERVAL_S
from models.scaling.policies import POLICIES
from pipelines.arena.replays.cell import MINUTE_S, RescaleRecord

MOST_POINTS: Final = 600
"""Most points of one curve; a plot is some 1,100 pixels wide."""
MIB_PER_GIB: Final = 1024
INPUT: Final = "#0f172a"
"""Colour of the arrival rate, which belongs to no policy."""
_PALETTE: Final = ("#2563eb", "#059669", "#d97706", "#ec4899", "#7c3aed", "#0891b2", "#dc2626", "#65a30d", "#92400e")
"""More distinct than the colours of other pages, since up to seven lines cross one another."""

Curve = np.ndarray
"""float32[points]."""


@dataclass(frozen=True)
class Mark:
    """A rescale: when it was decided (minutes), tasks afterwards, and its text."""

    minute: float
    tasks: int
    refused: bool
    text: str


@dataclass(frozen=True)
class Curves:
    """A replay; a point represents the time since the one before. Each curve float32[points]."""

    policy: str
    minutes: Curve
    """End of the period of each point, minutes."""
    rate: Curve
    """Records/s that arrived, mean."""
    capacity: Curve
    """Capacity of the tasks, records/s, as last measured; NaN where it is unknown."""
    tasks: Curve
    """The most."""
    memory_gib: Curve
    """The largest, of all tasks."""
    latency_s: Curve
    """The longest time that a record waited."""
    lag_records: Curve
    """The largest lag, records."""
    marks: tuple[Mark, ...]


def curves(policy: str, trace: pa.Table, rescales: tuple[RescaleRecord, ...], most: int = MOST_POINTS) -> Curves:
    """The curves of a trace with `pipelines.arena.replays.cell.TRACE_SCHEMA`, with at most `points` points.

    Peaks survive: a point shows the worst of its reporting intervals (the mean rate, the last capacity).
    """
    every = math.ceil(len(trace) / most)
    firsts = np.arange(0, len(trace), every)
    lasts = np.minimum(firsts + every, len(trace)) - 1

    def column(name: str) -> np.ndarray:
        return np.asarray(trace[name].to_numpy(), dtype=np.float64)

    def highest(name: str, unit: float = 1.0) -> Curve:
        return (np.maximum.reduceat(column(name), firsts) / unit).astype(np.float32)

    rate = np.add.reduceat(column("rate"), firsts) / (lasts - firsts + 1)
    return Curves(
        policy=policy,
        minutes=(column("time_s")[lasts] / MINUTE_S).astype(np.float32),
        rate=rate.astype(np.float32),
        capacity=column("capacity")[lasts].astype(np.float32),
        tasks=highest("tasks"),
        memory_gib=highest("memory_mb", MIB_PER_GIB),
        latency_s=highest("latency_s"),
        lag_records=highest("lag_records"),
        marks=tuple(_mark(rescale) for rescale in rescales),
    )


def seconds_per_point(intervals: int, most: int = MOST_POINTS) -> float:
    """The period of a point, in a trace of `intervals` reporting intervals."""
    return math.ceil(intervals / most) * SAMPLE_INTERVAL_S


def _mark(rescale: RescaleRecord) -> Mark:
    did = "refused" if rescale.refused else f"{rescale.tasks} tasks, down for {rescale.downtime_s:.0f} s"
    said = [did, rescale.reason, *([rescale.note] if rescale.note else [])]
    return Mark(rescale.time_s / MINUTE_S, rescale.tasks, rescale.refused, ". ".join(said))


def policy_colours(policies: Iterable[str]) -> dict[str, str]:
    """A colour for each policy by its place in the registry, so that it is the same in every report."""
    known = list(POLICIES)
    return {name: _PALETTE[known.index(name) % len(_PALETTE)] for name in policies}
