"""What bounds a planned job: the facts of its operators at the predicted MST, from what smaller configurations showed.

Notation, at the source rate lambda: r_i, o_i, p_i as in `models/capacity/bids2.py`, s_i the fullest task's share of the
records of operator i; with more keys than key groups at least that of its groups.

    mean busyness        b_i = lambda r_i / (p_i o_i)
    fullest task's       f_i = lambda r_i s_i / o_i
    in short intervals   m_i = lambda r_i (s_i + h_i (1 - s_i)) / o_i

h_i is the share that went to one task at a time beyond s_i in the largest configuration measured: a hot key has it at any
number of tasks.
"""

import math
from collections.abc import Mapping, Sequence

from models.capacity.diagnosis.bound_by import BoundBy
from models.capacity.diagnosis.diagnose import diagnose
from models.capacity.diagnosis.facts import HELD_BACK, BoundFacts, OperatorFacts
from models.capacity.observation import Observation
from models.cluster import Cluster
from models.dataflow import Partitioning
from models.errors import InvalidInput
from models.job import Job, Kind, Operator
from models.keys.groups import key_groups
from models.keys.shares import KeyedInput
from models.plan.parts import Interval, Placement
from models.planning.parallelism import Scaling
from models.planning.physical.external import limited_bound
from models.vertices import JobVertex

LONG_HOT_S = 1.0
"""Buffers even out keys that are hot for a shorter time, seconds."""


def plan_bound(
    job: Job,
    cluster: Cluster,
    rate: float,
    scaling: Scaling,
    placement: Placement,
    observations: Sequence[Observation],
    keyed: Sequence[KeyedInput],
) -> BoundBy:
    """What bounds the plan.

    Args:
        rate: target, records/s at the sources together, to which the loads of the plan's dataflow belong.
        observations: of all measured budgets.
        keyed: what is known of the keys of operators.
    """
    if scaling.limit is not None and (beyond := scaling.unlimited_mst) is not None:
        unlimited = scaling.model_copy(update={"predicted_mst": beyond, "unlimited_mst": None})
        inner = plan_bound(job, cluster, rate, unlimited, placement, observations, keyed)
        return limited_bound(scaling.limit, beyond.value, inner)
    largest = largest_measured(observations, scaling.budget.memory_mb)
    facts = plan_facts(job, cluster, rate, scaling, placement, None if largest is None else largest.facts, keyed)
    return diagnose(facts, seen=None if largest is None else largest.bound_by)


def largest_measured(observations: Sequence[Observation], memory_mb: float) -> Observation | None:
    """The observation with facts of most slots, with this memory where there is one; None without facts."""
    known = [o for o in observations if o.facts is not None]
    alike = [o for o in known if o.memory_mb == memory_mb]
    return max(alike or known, key=lambda o: (o.task_slots, o.mst), default=None)


def plan_facts(
    job: Job,
    cluster: Cluster,
    rate: float,
    scaling: Scaling,
    placement: Placement,
    measured: BoundFacts | None,
    keyed: Sequence[KeyedInput],
) -> BoundFacts:
    """The facts of a plan at its predicted MST. Sources below their limit are left out: they get the tasks that they need."""
    reached = scaling.predicted_mst.value or rate
    before = {} if measured is None else {o.name: o for o in measured.operators}
    keys = {one.operator: one for one in keyed}
    operators = [
        _operator(job, job.operator(name), scaling, reached / rate, before.get(name), keys.get(name))
        for name in job.order
    ]
    called = _called(operators, scaling.vertices)
    operators = chained_facts(operators, scaling.vertices)
    bounding = [o for o in operators if not o.is_source or (o.most_tasks is not None and o.parallelism >= o.most_tasks)]
    cores, network = _workers_use(cluster, scaling, placement, reached / rate)
    sent = {o.name: o.net * o.parallelism for o in scaling.dataflow.operators}
    return BoundFacts(
        rate=reached,
        measured=False,
        operators=tuple(bounding),
        cores_use=cores,
        network_use=network,
        network_vertex=None if network is None else called[max(sent, key=sent.__getitem__)],
    )


def chained_facts(operators: Sequence[OperatorFacts], vertices: Sequence[JobVertex]) -> list[OperatorFacts]:
    """The facts with one for each chain, named as its busiest operator: one thread does the work of all of them."""
    called = _called(operators, vertices)
    return [
        _chain([o for o in operators if called[o.name] == most.name], most, called)
        for most in operators
        if called[most.name] == most.name
    ]


def _called(operators: Sequence[OperatorFacts], vertices: Sequence[JobVertex]) -> dict[str, str]:
    """The busiest operator in the chain of each."""
    busy = {o.name: o.busyness or 0.0 for o in operators}
    chained = {name: max(v.operators, key=busy.__getitem__) for v in vertices for name in v.operators}
    return {name: chained.get(name, name) for name in busy}


def _chain(chain: Sequence[OperatorFacts], busiest: OperatorFacts, called: Mapping[str, str]) -> OperatorFacts:
    limits = [o.most_tasks for o in chain if o.most_tasks is not None]
    return busiest.model_copy(
        update={
            "upstream": tuple(dict.fromkeys(called[name] for name in chain[0].upstream)),
            "is_source": all(o.is_source for o in chain),
            "most_tasks": min(limits, default=None),
            **{
                field: _sum([getattr(o, field) for o in chain])
                for field in ("busyness", "fullest_busyness", "peak_busyness")
            },
        }
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if len(known) == len(values) else None


def _operator(
    job: Job,
    operator: Operator,
    scaling: Scaling,
    factor: float,
    before: OperatorFacts | None,
    keyed: KeyedInput | None,
) -> OperatorFacts:
    name = operator.name
    tasks, one_task = scaling.parallelism[name], scaling.true_rate_per_task[name]
    work = factor * scaling.records_in_per_s[name] / one_task
    has_keys = any(e.partitioning is Partitioning.HASH for e in job.upstream_edges(name))
    share = _fullest_share(job, tasks, keyed) if has_keys else None
    groups = (job.key_groups or key_groups(tasks)) if has_keys else None
    fullest = max(
        1 / tasks if share is None else share.value, 0.0 if groups is None else math.ceil(groups / tasks) / groups
    )
    hot = 0.0
    if has_keys:
        stated = _stated_hot_share(operator, factor * scaling.records_in_per_s[name])
        hot = stated if before is None else _moving_share(before)
    return OperatorFacts(
        name=name,
        parallelism=tasks,
        upstream=tuple(e.upstream for e in job.upstream_edges(name)),
        is_source=operator.kind is Kind.SOURCE,
        keyed=has_keys,
        windowed=operator.window is not None,
        most_tasks=job.most_tasks(name),
        key_groups=groups,
        busyness=work / tasks,
        fullest_busyness=work * fullest,
        peak_busyness=work * (fullest + hot * (1 - fullest)),
        state_share=None if before is None else before.state_share,
        cache_hit_rate=None if before is None else before.cache_hit_rate,
        fullest_share=share,
    )


def _fullest_share(job: Job, tasks: int, keyed: KeyedInput | None) -> Interval | None:
    """Share of the fullest task over time; None where nothing is known of the keys."""
    if keyed is None or not (keyed.groups or keyed.seen):
        return None
    try:
        return keyed.fullest_share(tasks, job.key_groups)
    except InvalidInput:  # more tasks than key groups
        return None


def _moving_share(before: OperatorFacts) -> float:
    """h_i: what one task at a time gets beyond the share that it has over time; 0 where it is unknown."""
    mean, fullest, peak = before.busyness, before.fullest_busyness, before.peak_busyness
    if not mean or fullest is None or peak is None or before.parallelism == 1:
        return 0.0
    if before.backpressure is not None and before.backpressure > HELD_BACK:
        return 0.0
    over_time, at_a_time = (min(one / (mean * before.parallelism), 1.0) for one in (fullest, peak))
    return max(at_a_time - over_time, 0.0) / (1 - over_time) if over_time < 1 else 0.0


def _stated_hot_share(operator: Operator, records_in_per_s: float) -> float:
    """The same from the job's file, for published measurements, which show no tasks."""
    keys = operator.keys
    if keys is None or keys.hot_share == 0:
        return 0.0
    period_s = keys.hot_period_s
    if period_s is None and keys.hot_period_records is not None and records_in_per_s > 0:
        period_s = keys.hot_period_records / records_in_per_s
    return keys.hot_share if period_s is not None and period_s >= LONG_HOT_S else 0.0


def _workers_use(
    cluster: Cluster, scaling: Scaling, placement: Placement, factor: float
) -> tuple[float | None, float | None]:
    """Use of the fullest worker's cores and outbound network; None where no worker states them.

    Records to tasks on the same worker need no network: on average the worker's share of all workers.
    """
    loads = {o.name: o for o in scaling.dataflow.operators}
    remote = 1 - 1 / len(placement)
    cores, network = [], []
    for worker in cluster.workers:
        tasks: Mapping[str, int] = placement.get(worker.name, {})
        if worker.cores is not None:
            cores.append(factor * sum(n * loads[name].cpu for name, n in tasks.items()) / worker.cores)
        if worker.net is not None:
            network.append(factor * remote * sum(n * loads[name].net for name, n in tasks.items()) / worker.net)
    return max(cores, default=None), max(network, default=None)
