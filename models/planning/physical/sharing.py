"""Partitions and key groups, which tasks share in whole numbers.

Of N of them, the fullest of n tasks has ceil(N / n), which is N / n only where n divides N. A prime N has no such n but 1
and N.
"""

import math
from collections.abc import Mapping
from typing import Final

from models.dataflow import Partitioning
from models.errors import Infeasible
from models.job import Job
from models.keys.awkward import awkward_key_groups, divisors
from models.keys.groups import key_groups
from models.wording import amount, tasks

UNEVEN: Final = 1.1
"""Fullest task's key groups over the mean from which a plan says so."""
_ROUNDING: Final = 1e-9
"""Share by which a computed number of tasks may exceed a whole one that it stands for."""


def tasks_for_partitions(busy: float, partitions: int | None) -> int:
    """The fewest tasks of a source of which the fullest keeps up with the partitions that it has.

    Args:
        busy: tasks that would do if records were divided evenly.
        partitions: of the topic; None where they are not stated.

    Returns:
        Where even a task for each partition does not keep up, a task for each: the source then bounds the plan.
    """
    even = max(1, math.ceil(busy))
    if partitions is None:
        return even
    share = 1 / busy if busy > 0 else math.inf
    return next((n for n in range(even, partitions + 1) if math.ceil(partitions / n) / partitions <= share), partitions)


def check_partitions(job: Job, busy: Mapping[str, float], rate: float) -> None:
    """Check that each source has the partitions for as many tasks as read its share of the target rate.

    Args:
        busy: tasks of each source that would do at `rate` if records were divided evenly.

    Raises:
        Infeasible: one has too few; the message says how many it needs, and the highest rate that it can read.
    """
    for source in job.sources:
        partitions, needed = source.max_parallelism, busy[source.name]
        if partitions is not None and needed > partitions * (1 + _ROUNDING):
            raise Infeasible(
                f"{source.name} needs {math.ceil(needed)} tasks to read its share of {amount(rate)} records/s, but its topic "
                f"has {partitions} partitions, and a task without one reads nothing; give the topic {math.ceil(needed)} "
                f"partitions or more (and state them as max_parallelism of {source.name}), or plan for at most "
                f"{amount(rate * partitions / needed)} records/s"
            )


def shared_partitions(job: Job, busy: Mapping[str, float], parallelism: Mapping[str, int]) -> list[str]:
    """How the tasks of each source share its partitions, where that decided their number or leaves some with more.

    Args:
        busy: tasks of each source that would do at the planned rate if records were divided evenly.
        parallelism: tasks of each operator in the plan.
    """
    remarks = (
        _shared(source.name, source.max_parallelism, busy[source.name], parallelism[source.name])
        for source in job.sources
        if source.max_parallelism is not None
    )
    return [remark for remark in remarks if remark is not None]


def _shared(name: str, partitions: int, busy: float, planned: int) -> str | None:
    even = max(1, math.ceil(busy))
    if even > partitions:
        return (
            f"{partitions} partitions of {name}: {even} tasks would be needed with headroom, but only {partitions} find a "
            f"partition; {planned} planned, which leaves less headroom; more partitions would help"
        )
    asked = even if planned == tasks_for_partitions(busy, partitions) else planned
    fullest = math.ceil(partitions / asked)
    fewest = math.ceil(partitions / fullest)
    alike = f", as {fewest} do" if fewest < asked else ""
    if asked < planned:
        return (
            f"{partitions} partitions of {name}: {tasks(asked)} would have {fullest} on the busiest{alike}, "
            f"and one keeps up with {partitions / busy:.3g}; {planned} planned"
        )
    if not alike:
        return None
    return (
        f"{partitions} partitions of {name}: {planned} tasks have {fullest} on the busiest{alike}; {planned} planned, since "
        "those of the operators that Flink chains to it are as many"
    )


def uneven_key_groups(job: Job, parallelism: Mapping[str, int]) -> list[str]:
    """Remarks on operators whose tasks cannot share the key groups evenly, and on a number of them that few can."""
    found = awkward_key_groups("key_groups", job.key_groups)
    remarks = [] if found is None else [found]
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
    evenly = divisors(groups)
    below, above = max(n for n in evenly if n < tasks), min(n for n in evenly if n > tasks)
    return f"{below} or {above} tasks share them evenly"
