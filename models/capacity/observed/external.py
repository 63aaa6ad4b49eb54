"""A limit outside Flink, suspected from how a vertex waits: the quota of what its operators write to or call.

Notation, of the vertex that binds: p tasks, busy for the share b of the time in the mean, R records/s into all of them; C the
CPU that all TaskManagers of the job used, cores.

    w  =  C / (b p)       at most this share of its busy time is work, since C holds all that others use, too       (1)

A call that waits is busy time for Flink, but no CPU. So w is small where tasks wait for a service, for a quota of it, for
state on disk, or for a core of a machine that is full. With p' tasks in an earlier observation of the same vertex, busy all
the time as well, which took R':

    R' = R      the records of all tasks sum to a constant: a limit of all of them together                         (2)
    R'/p' = R/p each task takes the same: a call takes its time, and more tasks take more                           (3)

One number of tasks does not distinguish (2) from (3).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from models.capacity.diagnosis.facts import HELD_BACK
from models.capacity.diagnosis.finding import BUSY, FULL
from models.capacity.observed.record import ObservedJob, ObservedVertex, SuspectedLimit
from models.capacity.observed.surroundings import Surroundings
from models.dataflow import Partitioning
from models.wording import amount, tasks

WORKS: Final = 0.5
"""Most of its busy time that may be work (w) of a vertex that waits for something else."""
SAME: Final = 0.1
"""Share by which two rates may differ and count as equal: runs of one configuration differ as much."""
ANOTHER: Final = 1.25
"""Least factor between two numbers of tasks, so that equal rates and equal rates a task differ by more than SAME."""


@dataclass(frozen=True)
class _Full:
    """A vertex whose tasks are busy in the mean, not only those of a hot key, while what is before it waits."""

    vertex: ObservedVertex
    rate: float
    busy_tasks: float
    """b p."""
    arriving: float | None
    """Records/s at the sources of the job."""


def suspected_limit(
    seen: ObservedJob, about: Surroundings, earlier: Sequence[ObservedJob] = ()
) -> SuspectedLimit | None:
    """The limit that the vertex that binds seems to wait for; None where nothing points to one, or an earlier observation
    says that more tasks take more.

    Args:
        about: of the same observation.
        earlier: observations of the same job, the newest first.
    """
    bound = _binding(seen)
    full = None if bound is None else _full(seen, bound)
    if full is None or _reads_only(full.vertex, about):
        return None
    others = [other for one in earlier if (other := _same_vertex(one, full.vertex)) is not None]
    rescaled = [one for one in others if _another(one.vertex.parallelism, full.vertex.parallelism)]
    constant = [one for one in rescaled if _equal(one.rate, full.rate)]
    grown = [one for one in rescaled if one not in constant]
    works, used = _works(seen, full), _cores_use(seen, about)
    waits = works is not None and works <= WORKS and (used is None or used < FULL)
    has_cores = used is not None and used < FULL
    if (grown and not constant) or not (waits or (constant and has_cores)):
        return None
    return SuspectedLimit(
        vertex=full.vertex.name,
        rate_limit=float(f"{full.rate:.3g}"),
        certainty="likely" if constant else "possible",
        evidence=tuple(_evidence(full, works if waits else None, constant, others)),
        unclear=tuple(_unclear(full, about, used, constant, grown)),
    )


def _binding(seen: ObservedJob) -> ObservedVertex | None:
    """The vertex that binds by its work. While buffers drain, none may be said to: then the busiest."""
    if seen.bound_by.cause in ("CPU", "max parallelism"):
        return next((v for v in seen.vertices if v.name == seen.bound_by.vertex), None)
    return max(seen.vertices, key=lambda v: v.busyness or 0.0) if seen.bound_by.cause == "unknown" else None


def _full(seen: ObservedJob, vertex: ObservedVertex) -> _Full | None:
    held_back = any((v.backpressure or 0.0) > HELD_BACK for v in seen.vertices if v.id != vertex.id)
    at_limit = held_back or (seen.capacity is not None and seen.capacity.seen)
    if not (at_limit and vertex.observed_rate and (vertex.busyness or 0.0) >= BUSY):
        return None
    busy_tasks = (vertex.busyness or 0.0) * vertex.parallelism
    return _Full(vertex, vertex.observed_rate, busy_tasks, seen.arriving_rate)


def _reads_only(vertex: ObservedVertex, about: Surroundings) -> bool:
    """Whether it is a source with nothing chained to it, whose time is that of its own threads."""
    return len(vertex.operators) == 1 and all(e.downstream != vertex.id for e in about.edges)


def _same_vertex(other: ObservedJob, vertex: ObservedVertex) -> _Full | None:
    """The vertex in an earlier observation, if it was full there."""
    found = next((v for v in other.vertices if v.id == vertex.id), None)
    return None if found is None or found.operators != vertex.operators else _full(other, found)


def _another(one: int, other: int) -> bool:
    return max(one, other) >= ANOTHER * min(one, other)


def _equal(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * max(one, other)


def _works(seen: ObservedJob, full: _Full) -> float | None:
    """w of Eq. 1; None where a TaskManager does not report its CPU."""
    known = [w.cores for w in seen.workers if w.cores is not None]
    return sum(known) / full.busy_tasks if known and len(known) == len(seen.workers) else None


def _cores_use(seen: ObservedJob, about: Surroundings) -> float | None:
    """The most of the cores of a TaskManager that are in use; None unless those of all are known."""
    uses = [w.cores / about.cores[w.name] for w in seen.workers if w.cores is not None and about.cores.get(w.name)]
    return max(uses) if uses and len(uses) == len(seen.workers) else None


def _evidence(full: _Full, works: float | None, constant: Sequence[_Full], others: Sequence[_Full]) -> Iterator[str]:
    vertex = full.vertex
    yield (
        f"{tasks(vertex.parallelism)} of {vertex.name} {'is' if vertex.parallelism == 1 else 'are'} busy for "
        f"{vertex.busyness or 0.0:.0%} of the time and {'takes' if vertex.parallelism == 1 else 'take'} {amount(full.rate)} "
        "records/s together, while records wait before it"
    )
    if works is not None:
        yield (
            f"all TaskManagers of the job use {works * full.busy_tasks:.2g} cores, so that at most {works:.0%} of that busy "
            "time is work, and the rest is waiting"
        )
    for one in constant[:1]:
        yield (
            f"with {tasks(one.vertex.parallelism)} it took {amount(one.rate)} records/s, which is the same: "
            f"{amount(one.rate / one.vertex.parallelism)} a task, and {amount(full.rate / vertex.parallelism)} now"
        )
    offered = [one for one in others if one.arriving and full.arriving and not _equal(one.arriving, full.arriving)]
    for one in [one for one in offered if _equal(one.rate, full.rate)][:1]:
        yield (
            f"it took {amount(one.rate)} records/s when {amount(one.arriving or 0.0)} arrived at the sources, and takes "
            f"{amount(full.rate)} now that {amount(full.arriving or 0.0)} do"
        )


def _unclear(
    full: _Full, about: Surroundings, used: float | None, constant: Sequence[_Full], grown: Sequence[_Full]
) -> Iterator[str]:
    vertex = full.vertex
    if not constant:
        yield (
            "calls that take long look the same, and then more tasks take more: observe the job again with another number of "
            f"tasks of {vertex.name} (a quarter more or less)"
        )
    for one in grown[:1]:
        yield f"with {tasks(one.vertex.parallelism)} it took {amount(one.rate)} records/s, which is not the same"
    if used is None:
        yield "the cores of the TaskManagers are unknown: tasks that wait for a core look the same"
    if any(e.downstream == vertex.id and e.partitioning is Partitioning.HASH for e in about.edges):
        yield "it may keep state: tasks that wait for state on disk look the same"
    if len(vertex.operators) > 1:
        yield (
            f"its chain has {len(vertex.operators)} operators ({', '.join(vertex.operators)}), of which any may wait; the "
            "limit counts the records into the first"
        )
    yield "whether it is a quota, or a server at its own limit, which may change with its load"
