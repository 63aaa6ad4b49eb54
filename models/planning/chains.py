"""Operators that Flink chains: they run in one vertex, so they must have the same number of tasks.

Flink chains two operators where the edge between them is a forward edge and is the only input of the second.
"""

from collections.abc import Mapping
from itertools import groupby

from models.dataflow import Partitioning
from models.errors import Infeasible
from models.job import Job


def chained_groups(job: Job) -> tuple[tuple[str, ...], ...]:
    """Groups of two or more operators that Flink chains, each in topological order."""
    head = {name: name for name in job.order}
    for name in job.order:
        inputs = job.upstream_edges(name)
        if len(inputs) == 1 and inputs[0].partitioning is Partitioning.FORWARD:
            head[name] = head[inputs[0].upstream]
    ordered = sorted(job.order, key=lambda name: job.order.index(head[name]))
    groups = (tuple(members) for _, members in groupby(ordered, key=lambda name: head[name]))
    return tuple(group for group in groups if len(group) > 1)


def equalised(job: Job, parallelism: Mapping[str, int]) -> tuple[dict[str, int], tuple[str, ...]]:
    """The parallelism with every chained group at its largest number of tasks, and a reason for each group that changed.

    Raises:
        Infeasible: an operator of a group may not have that many tasks.
    """
    tasks, reasons = dict(parallelism), []
    for group in chained_groups(job):
        most = max(tasks[name] for name in group)
        for name in group:
            limit = job.operator(name).max_parallelism
            if limit is not None and most > limit:
                raise Infeasible(
                    f"operators that Flink chains must have equal parallelism, but of {' -> '.join(group)} one needs {most} "
                    f"tasks and {name!r} may have at most {limit}; make the edge between them 'rebalance' and break the "
                    "chain in the job, or raise the limit"
                )
        if len({tasks[name] for name in group}) > 1:
            wanted = ", ".join(f"{name} {tasks[name]}" for name in group)
            reasons.append(f"{' -> '.join(group)} get {most} tasks each, since Flink chains them (alone: {wanted})")
            tasks |= dict.fromkeys(group, most)
    return tasks, tuple(reasons)
