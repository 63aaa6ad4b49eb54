"""Records inside a running job: sent to a vertex, and not yet taken by it.

They lie in network buffers, which hold many small records: a slow job may keep seconds of them, while little waits before its
sources. Where all that the senders U of a vertex v emit goes to v, once,

    in flight = sum over u in U of (out_u - max(T_u - T_v, 0) x rate_u) - in_v, at least 0

with out and in counted since the start, which all of them share, as a restart takes all tasks along. Flink reports counters
late, those of one vertex later than those of another: T is how long the tasks had run when they were counted.
"""

from collections.abc import Iterable, Mapping, Sequence

from models.capacity.observed.counters.counts import JobCounts, VertexCounts
from models.capacity.observed.counters.intervals import TaskInterval


def in_flight(
    counts: JobCounts, done: Iterable[TaskInterval], senders: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Records in flight to each vertex, by id; those where a task does not report its counters are left out.

    Args:
        done: what the tasks did up to these counts.
        senders: U of each vertex, by id; only of vertices to which all goes that these emit, once.
    """
    rates: dict[str, float] = {}
    for one in done:
        rates[one.vertex] = rates.get(one.vertex, 0.0) + one.records_out / one.seconds
    vertices = {v.id: v for v in counts.vertices}
    found = {}
    for id_, upstream in senders.items():
        sent = [_sent(vertices[u], vertices[id_], rates.get(u, 0.0)) for u in upstream]
        taken = _sum(task.records_in for task in vertices[id_].tasks)
        if taken is not None and None not in sent:
            found[id_] = max(sum(one or 0.0 for one in sent) - taken, 0.0)
    return found


def _sent(sender: VertexCounts, to: VertexCounts, rate: float) -> float | None:
    """When the counters of `to` were taken."""
    out, ran, had_run = _sum(task.records_out for task in sender.tasks), _ran_s(sender), _ran_s(to)
    if out is None or ran is None or had_run is None:
        return None
    return out - max(ran - had_run, 0.0) * rate


def _ran_s(vertex: VertexCounts) -> float | None:
    """Mean over its tasks, but for those that have finished while others run: their times stand still."""
    tasks = [task for task in vertex.tasks if not task.finished] or vertex.tasks
    known = _sum(task.ran_s for task in tasks)
    return None if known is None else known / len(tasks)


def _sum(values: Iterable[float | None]) -> float | None:
    every = list(values)
    return None if None in every or not every else sum(one or 0.0 for one in every)
