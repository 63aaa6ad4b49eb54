"""Placing shared slots: CAPS over mixes, and Flink's own policies.

CAPS places the slots of each of a few mixes (`models.placement.shared.mixes`), with proof for the mix, and keeps the plan
that needs the least common relaxation of the least costs that any of them has. Moves of single tasks between slots turn it
into plans of further mixes, which are placed likewise until none is better. Flink's default mix is kept where it is about as
good.

Whether another mix could be better is answered by a relaxation: tasks placed without regard to slots, on workers with a
slot for each task that theirs can hold. Every plan of every mix is a plan of the relaxation, so its proved minima hold for
all mixes. Where its own plan keeps to the slots it is the answer, and where the kept plan costs no more, it is the best of
every mix.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from models.cluster import Cluster
from models.placement.baselines.shared import by_tasks, filled, spread_out
from models.placement.cost import as_array, as_vector, cost_vector, costs
from models.placement.kernels.problem import Floats
from models.placement.minimum import Effort, Minimiser
from models.placement.problem import DIMENSIONS, IDLE_SHARE, Problem, idle_loads
from models.placement.results import Tuning
from models.placement.shared.bundles import bundled, by_vertex, task_problem
from models.placement.shared.improving import Rank, improve
from models.placement.shared.mixes import Bundle, Mix, candidates, nested, round_robin
from models.placement.shared.results import SharedPlacement, SharedPolicy
from models.placement.shared.sharing import SharedDataflow
from models.placement.shared.stable import slots_of
from models.placement.time_limit import Clock, TimeLimit
from models.placement.tuning import FLOOR, TIME_LIMIT_S, tuned_by
from models.plan.parts import Placement
from models.plan.slots import SlotBundle

SAME_COST: Final = 1e-9
"""Costs that differ by less are equal."""
AS_GOOD: Final = 0.01
"""Flink's default mix is kept where its plan loads no worker by more than this share above the best plan's."""
ROUNDS: Final = 3
"""Mixes at most that moves of single tasks lead to."""


def tune_shared(
    shared: SharedDataflow,
    cluster: Cluster,
    *,
    idle_share: float = IDLE_SHARE,
    seed: int = 0,
    clock: Clock | None = None,
    time_limit_s: float | None = TIME_LIMIT_S,
    effort: Effort | None = None,
) -> SharedPlacement:
    """The mix and the placement with the smallest thresholds; arguments as for `tune`.

    Raises:
        Infeasible: fewer slots than the widest vertices need, or memory that fits nowhere.
        SluiceError: a plan that fits the workers' memory was neither found nor excluded.
    """
    mixes = candidates(shared)
    share_s = None if time_limit_s is None else time_limit_s / (len(mixes) + 1)
    idle: dict[str, float] = {}

    def tuned(problem: Problem) -> Tuning:
        return tuned_by(Minimiser(problem, TimeLimit(clock, share_s), effort or Effort(), seed), idle)

    problems = {name: bundled(shared, mix, cluster) for name, mix in mixes.items()}
    idle |= idle_loads(cluster, problems["nested"].most, idle_share)
    found = [_of_mix(shared, name, mixes[name], tuned(problem)) for name, problem in problems.items()]
    free = task_problem(shared, cluster)
    relaxed = tuned(free)
    kept = _free(shared, cluster, free, relaxed.placement, relaxed)
    plans = found if kept is None else [*found, kept]
    best = min(plans, key=lambda plan: _rank(as_array(plan.cost), plans, idle))
    for _ in range(ROUNDS):
        moved = _moved(shared, cluster, free, best, lambda cost: _rank(cost, plans, idle))
        if moved is None:
            break
        best = _of_mix(shared, "free", moved, tuned(bundled(shared, moved, cluster)))
        plans.append(best)
    best = min(plans, key=lambda plan: _rank(as_array(plan.cost), plans, idle))
    return _judged(found[0] if _as_good(found[0], best, problems["nested"], idle) else best, relaxed)


def place_shared(
    shared: SharedDataflow,
    cluster: Cluster,
    policy: SharedPolicy = "caps",
    seed: int = 0,
    *,
    clock: Clock | None = None,
    time_limit_s: float | None = TIME_LIMIT_S,
) -> SharedPlacement:
    """Choose which tasks share a slot, and a worker for every slot.

    Args:
        policy: `caps` as `tune_shared`; `default`, `evenly` (`cluster.evenly-spread-out-slots`) and `tasks`
            (`taskmanager.load-balance.mode: TASKS`) are Flink's, which look at no load.
        seed: of the order of slots in Flink's policies, and of ties in the search.

    Raises:
        Infeasible: fewer slots than the widest vertices need, or memory that fits nowhere.
        SluiceError: a plan that fits the workers' memory was neither found nor excluded.
    """
    if policy == "caps":
        return tune_shared(shared, cluster, seed=seed, clock=clock, time_limit_s=time_limit_s)
    name, mix = ("round-robin", round_robin(shared)) if policy == "tasks" else ("nested", nested(shared))
    problem = bundled(shared, mix, cluster)
    counts = {"default": filled, "evenly": spread_out, "tasks": by_tasks}[policy](problem, mix, seed)
    return SharedPlacement(
        policy=policy,
        mix=name,
        placement=shared.by_operator(by_vertex(mix, problem.placement(counts))),
        slots=slots_of(mix, problem.placement(counts)),
        cost=cost_vector(problem, counts),
    )


def _of_mix(shared: SharedDataflow, name: str, mix: Mix, tuning: Tuning) -> SharedPlacement:
    placement = shared.by_operator(by_vertex(mix, tuning.placement))
    return SharedPlacement(
        policy="caps",
        mix=name,
        placement=placement,
        slots=slots_of(mix, tuning.placement),
        cost=tuning.cost,
        tuning=tuning.model_copy(update={"placement": placement, "subtasks": None}),
    )


def _moved(shared: SharedDataflow, cluster: Cluster, free: Problem, plan: SharedPlacement, rank: Rank) -> Mix | None:
    """The mix of a better plan that moves of single tasks lead to; None without one."""
    vertices = list(shared.parallelism)
    slots = np.array(
        [
            [
                sum(b.slots for b in plan.slots.get(w.name, ()) if b.vertices[0] in same)
                for same in _of_same_group(shared)
            ]
            for w in cluster.workers
        ]
    )
    counts = np.array([[plan.placement.get(w.name, {}).get(v, 0) for v in vertices] for w in cluster.workers])
    better = improve(free, counts, slots, rank)
    if (better == counts).all():
        return None
    bundles: Counter[tuple[str, ...]] = Counter()
    for row in better.tolist():
        for names in shared.groups.values():
            bundles.update({b.vertices: b.slots for b in _stacked(names, dict(zip(vertices, row, strict=True)))})
    return tuple(Bundle(names, number) for names, number in bundles.items())


def _of_same_group(shared: SharedDataflow) -> list[tuple[str, ...]]:
    """For each vertex, all vertices of its group."""
    return [shared.groups[shared.group_of[v]] for v in shared.parallelism]


def _free(
    shared: SharedDataflow, cluster: Cluster, problem: Problem, vertices: Placement, tuning: Tuning
) -> SharedPlacement | None:
    """The plan of the relaxation with its tasks in slots; None where they need more than there are.

    A worker gives a group as many slots as its vertex with the most tasks there has; all workers together must give it no
    more than its widest vertex has.
    """
    memory_mb = {o.name: o.memory_mb for o in shared.dataflow.operators}
    slots: dict[str, tuple[SlotBundle, ...]] = {}
    for worker in cluster.workers:
        tasks = vertices.get(worker.name, {})
        mix = [bundle for names in shared.groups.values() for bundle in _stacked(names, tasks)]
        needed_mb = sum(b.slots * max(memory_mb[v] for v in b.vertices) for b in mix)
        if sum(b.slots for b in mix) > worker.slots or (worker.memory_mb or np.inf) < needed_mb:
            return None
        if mix:
            slots[worker.name] = tuple(SlotBundle(vertices=b.vertices, slots=b.slots) for b in mix)
    if sum(b.slots for bundles in slots.values() for b in bundles) > shared.slots:
        return None
    placement = shared.by_operator(vertices)
    return SharedPlacement(
        policy="caps",
        mix="free",
        placement=placement,
        slots=slots,
        cost=as_vector(costs(problem, problem.counts(vertices))),
        tuning=tuning.model_copy(update={"placement": placement, "subtasks": None}),
    )


def _stacked(vertices: Sequence[str], tasks: dict[str, int]) -> list[Bundle]:
    """The tasks of a group on one worker in as few slots as they fit."""
    levels = sorted({tasks[v] for v in vertices if tasks.get(v)})
    return [
        Bundle(tuple(v for v in vertices if tasks.get(v, 0) >= level), level - below)
        for below, level in zip([0, *levels], levels, strict=False)
    ]


def _rank(cost: Floats, plans: Sequence[SharedPlacement], idle: dict[str, float]) -> tuple[float, ...]:
    """The least common relaxation first, of the least costs that any plan's tuning found; then the costs in turn."""
    single = np.min([as_array(p.tuning.single) for p in plans if p.tuning is not None], axis=0)
    counted = np.array([name not in idle for name in DIMENSIONS])
    relaxation = float((cost / np.maximum(single, FLOOR))[counted].max(initial=0.0))
    return (round(relaxation, 9), *np.round(cost[np.argsort(~counted, kind="stable")], 9).tolist())


def _as_good(default: SharedPlacement, best: SharedPlacement, scale: Problem, idle: dict[str, float]) -> bool:
    """Whether the plan with Flink's default mix, which needs no other way to share slots, is about as good as the best."""
    counted = np.array([name not in idle for name in DIMENSIONS])
    here, there = (scale.least + as_array(p.cost) * (scale.most - scale.least) for p in (default, best))
    return bool((here <= there * (1 + AS_GOOD))[counted].all())


def _judged(plan: SharedPlacement, relaxed: Tuning) -> SharedPlacement:
    """The plan with what the relaxation proves of all mixes."""
    no_more = bool((as_array(plan.cost) <= as_array(relaxed.cost) + SAME_COST).all())
    return plan.model_copy(
        update={"least": relaxed.single_bound, "best_of_every_mix": relaxed.status == "optimal" and no_more}
    )
