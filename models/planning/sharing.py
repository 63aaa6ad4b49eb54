"""Partitions and key groups, which tasks share in whole numbers.

Of N of them, the fullest of n tasks has ceil(N / n), which is N / n only where n divides N. A prime N has no such n but 1
and N.
"""

import math
from collections.abc import Mapping
from typing import Final

from models.dataflow import Partitioning
from models.job import Job
from models.keys.groups import key_groups

UNEVEN: Final = 1.1
"""Fullest task's key groups over the mean from which a plan says so."""


def tasks_for_partitions(busy: float, partitions: int | None) -> int:
    """The fewest tasks of a source of which the fullest keeps up with the partitions that it has.

    Args:
        busy: tasks that would do if records were divided evenly.
        partitions: of the topic; None where they are not stated.

    Returns:
        Where even a task for each partition does not keep up, what would do without them: the source then bounds the plan.
    """
    even = max(1, math.ceil(busy))
    if partitions is None:
        return even
    share = 1 / busy if busy > 0 else math.inf
    return next((n for n in range(even, partitions + 1) if math.ceil(partitions / n) / partitions <= share), even)


def uneven_key_groups(job: Job, parallelism: Mapping[str, int]) -> list[str]:
    """Remarks on operators whose tasks cannot share the key groups evenly."""
    remarks = []
    for operator in job.scaled_operators:
        name, tasks = operator.name, parallelism[operator.name]
        if not any(e.partitioning is Partitioning.HASH for e in job.upstream_edges(name)):
            continue
        groups = job.key_groups or key_groups(tasks)
        fullest = math.ceil(groups / tasks)
        if tasks > groups or fullest * tasks < UNEVEN * groups:
            continue
        remarks.append(
            f"{tasks} tasks of {name} share {groups} key groups: the fullest has {fullest}, {fullest * tasks / groups - 1:.0%} "
            f"more than the mean; {_even(groups, tasks)}"
        )
    return remarks


def _even(groups: int, tasks: int) -> str:
    divisors = [n for n in range(1, groups + 1) if groups % n == 0]
    if len(divisors) == 2:
        return (
            f"{groups} is prime, so only 1 or {groups} tasks share it evenly; a power of two as key groups would help"
        )
    below, above = max(n for n in divisors if n < tasks), min(n for n in divisors if n > tasks)
    return f"{below} or {above} tasks share them evenly"
