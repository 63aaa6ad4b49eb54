"""Operators that Flink chains: they run in one vertex, so they must have the same number of tasks.

Flink chains two operators where the edge between them is a forward edge and is the only input of the second. A job's file
may state the chains instead (`vertices`). One thread runs a task of a chain, so where it does, a chain needs the tasks for
the work of all its operators. With the source rate lambda that the tasks of the operators alone sustain under even load,
and o_i, r_i, p_i as in `models/capacity/bids2.py`:

    lambda = min_i p_i o_i / r_i                           over all operators but sources
    tasks of a chain c = max(max_i p_i, ceil(sum_i w_i))   over the operators of c
    w_i = lambda r_i / o_i, of a source its work at the planned rate

w_i counts what handing a record over to the next operator costs when measured, which a chain saves; it errs on the safe side.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

from models.dataflow import Partitioning
from models.errors import Infeasible
from models.job import Job, Kind
from models.planning.inputs import MeasuredOperators


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
        limit, limiting = _limit(job, group)
        if most > limit:
            raise Infeasible(
                f"operators that Flink chains must have equal parallelism, but of {' -> '.join(group)} one needs {most} "
                f"tasks and {limiting!r} may have at most {limit:.0f}; make the edge between them 'rebalance' and break the "
                "chain in the job, or raise the limit"
            )
        if len({tasks[name] for name in group}) > 1:
            wanted = ", ".join(f"{name} {tasks[name]}" for name in group)
            reasons.append(f"{' -> '.join(group)} get {most} tasks each, since Flink chains them (alone: {wanted})")
            tasks |= dict.fromkeys(group, most)
    return tasks, tuple(reasons)


def with_stated_chains(
    operators: MeasuredOperators, parallelism: Mapping[str, int], planned_rate: float
) -> tuple[dict[str, int], tuple[str, ...]]:
    """The parallelism with the tasks that each chain of the job's file needs, and a reason for each.

    Args:
        parallelism: tasks that each operator needs alone, sources included.
        planned_rate: what sources are planned for, records/s at all of them together.

    Raises:
        Infeasible: an operator of a chain may not have as many tasks.
    """
    job, tasks, reasons = operators.job, dict(parallelism), []
    work = _work(operators, parallelism, planned_rate)
    at_planned_rate = operators.records_in(planned_rate)
    for chain in (vertex.operators for vertex in job.deployed_vertices if len(vertex.operators) > 1):
        alone = max(tasks[name] for name in chain)
        least = max(alone, _whole(sum(at_planned_rate[n] / operators.true_rate_per_task[n] for n in chain)))
        limit, limiting = _limit(job, chain)
        if least > limit:
            raise Infeasible(
                f"operators that Flink chains run in one thread, so {' -> '.join(chain)} need {least} tasks, but "
                f"{limiting!r} may have at most {limit:.0f}; break the chain in the job and list them apart, or raise the limit"
            )
        needed = int(min(limit, max(alone, _whole(sum(work[name] for name in chain)))))
        wanted = ", ".join(f"{name} {tasks[name]}" for name in chain)
        reasons.append(
            f"{' -> '.join(chain)} get {needed} tasks each, since one thread runs a task of all of them (alone: {wanted})"
        )
        tasks |= dict.fromkeys(chain, needed)
    return tasks, tuple(reasons)


def _work(operators: MeasuredOperators, tasks: Mapping[str, int], planned_rate: float) -> dict[str, float]:
    """w_i: tasks that are busy all the time with each operator's records."""
    per_record = {
        name: ratio / operators.true_rate_per_task[name]
        for name, ratio in operators.records_in_per_source_record.items()
    }
    scaled = [o.name for o in operators.job.operators if o.kind is not Kind.SOURCE and per_record[o.name] > 0]
    even = min((tasks[name] / per_record[name] for name in scaled), default=planned_rate)
    return {name: (even if name in scaled else planned_rate) * cost for name, cost in per_record.items()}


def _whole(tasks: float) -> int:
    """Rounded up, but not for the last digit of a sum."""
    return math.ceil(tasks * (1 - 1e-9))


def _limit(job: Job, chain: Sequence[str]) -> tuple[float, str]:
    """Most tasks of a chain, and the operator that sets this limit."""
    limits = {name: job.most_tasks(name) for name in chain}
    return min((math.inf if limit is None else limit, name) for name, limit in limits.items())
