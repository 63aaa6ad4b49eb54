"""Threshold auto-tuning (CAPSys section 5.2): the smallest thresholds that a plan meets.

Phase 1: alpha*_d = min C_d with the other dimensions free, d = cpu, io, net.
Phase 2: lambda* = min over plans of max_d C_d / max(alpha*_d, floor); the thresholds are lambda* max(alpha*, floor).
The floor stands in for the minima at or near 0, which no factor would ever relax.
Last, within these thresholds, C_cpu, C_io and C_net are minimised one after the other, each held for the next: what
is left is Pareto-optimal, if each of these minima is proved. Where that turns up a plan better than a minimum of
phase 1 (large instances, nothing proved), phase 2 is done again from there.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import Infeasible, InvalidInput, SluiceError
from models.placement.budget import Budget, Clock
from models.placement.cost import TOLERANCE, as_vector, costs
from models.placement.feasible import first_feasible
from models.placement.minimum import Effort, Minimum, Ray, minimise
from models.placement.problem import DIMENSIONS, Floats, Ints, Problem
from models.placement.results import Tuning
from models.placement.search import NO_THRESHOLDS, Verdict
from models.placement.subtasks import assign_subtasks

RELAXATION_STEP: Final = 1.1
"""Factor of the paper's relaxation."""
FLOOR: Final = 0.01
TIME_LIMIT_S: Final = 60.0


def tune(
    dataflow: Dataflow,
    cluster: Cluster,
    *,
    floor: float = FLOOR,
    relaxation_step: float = RELAXATION_STEP,
    seed: int = 0,
    clock: Clock | None = None,
    time_limit_s: float | None = TIME_LIMIT_S,
    effort: Effort | None = None,
) -> Tuning:
    """The smallest thresholds that a placement can meet, with that placement.

    The same input gives the same answer as long as the time limit is not reached: the effort is counted in steps.

    Args:
        floor: least threshold to relax from, a cost above 0.
        relaxation_step: factor above 1 of the grid that `grid_relaxation` lies on.
        clock: seconds from any moment; without one there is no time limit, and `seconds` is None.
        effort: how much to search for each target; the default proves the optimum of small instances.

    Raises:
        Infeasible: fewer slots than tasks, or proved that memory fits nowhere.
        SluiceError: within the effort, no plan was found that fits the workers' memory, and none was excluded.
    """
    if not floor > 0:
        raise InvalidInput(f"the floor must be above 0, for 0 can not be relaxed by a factor, but got {floor}")
    if not relaxation_step > 1:
        raise InvalidInput(f"the relaxation step must be a factor above 1, but got {relaxation_step}")
    budget = Budget(clock, time_limit_s)
    problem = Problem.of(dataflow, cluster)
    effort = effort or Effort()
    plans = [any_plan(problem, budget, seed)]
    single: list[Minimum] = []
    for d in range(len(DIMENSIONS)):
        single.append(minimise(problem, _alone(d), plans, budget, effort=effort, seed=seed))
        plans.append(single[-1].counts)
    while True:
        joint, thresholds = _relax(problem, single, floor, plans, budget, effort, seed)
        tight, pareto_proved = _tighten(problem, joint, thresholds, [m.bound for m in single], budget, effort, seed)
        plans.append(tight)
        cost = costs(problem, tight)
        better = [bool(cost[d] < m.t - TOLERANCE) for d, m in enumerate(single)]
        if not any(better):
            break
        single = [Minimum(float(cost[d]), tight, m.bound) if better[d] else m for d, m in enumerate(single)]
    proved = joint.proved and all(m.proved for m in single)
    return Tuning(
        status="optimal" if proved and pareto_proved else "feasible",
        bound=joint.bound,
        gap=0.0 if joint.proved else 1 - joint.bound / joint.t,
        nodes=budget.nodes,
        seconds=budget.seconds,
        single=as_vector(np.array([m.t for m in single])),
        single_bound=as_vector(np.array([min(m.bound, m.t) for m in single])),
        single_proved={name: m.proved for name, m in zip(DIMENSIONS, single, strict=True)},
        floor=floor,
        relaxation=joint.t,
        grid_relaxation=_next_on_grid(joint.t, relaxation_step),
        thresholds=as_vector(thresholds),
        placement=problem.placement(tight),
        cost=as_vector(cost),
        pareto_proved=pareto_proved,
        subtasks=assign_subtasks(problem, tight),
    )


def any_plan(problem: Problem, budget: Budget, seed: int) -> Ints:
    """A plan (W, n) within slots and memory.

    Raises:
        Infeasible: proved that there is none.
        SluiceError: none found, none excluded.
    """
    found = first_feasible(problem, NO_THRESHOLDS, budget, seed)
    if found.verdict is Verdict.INFEASIBLE:
        raise Infeasible("the tasks do not fit the memory of the workers, however they are placed; use larger workers")
    if found.verdict is Verdict.UNKNOWN or found.counts is None:
        raise SluiceError(
            "no placement was found that fits the memory of the workers, and none was proved impossible; "
            "use larger workers, or allow more time"
        )
    return found.counts


def _alone(d: int) -> Ray:
    slope = np.zeros(3)
    slope[d] = 1.0
    return Ray(1 - slope, slope)


def _relax(
    problem: Problem,
    single: Sequence[Minimum],
    floor: float,
    plans: Sequence[Ints],
    budget: Budget,
    effort: Effort,
    seed: int,
) -> tuple[Minimum, Floats]:
    """Phase 2: the smallest common factor on max(alpha*, floor), and the thresholds (3,) that it gives."""
    least = np.maximum([m.t for m in single], floor)
    bound = float((np.array([m.bound for m in single]) / least).max())
    joint = minimise(problem, Ray(np.zeros(3), least), plans, budget, bound=bound, effort=effort, seed=seed)
    return joint, np.minimum(joint.t * least, 1.0)


def _tighten(
    problem: Problem, joint: Minimum, thresholds: Floats, bounds: list[float], budget: Budget, effort: Effort, seed: int
) -> tuple[Ints, bool]:
    """Minimise one cost after the other within the thresholds; the plan, and whether it is proved Pareto-optimal."""
    counts, proved = joint.counts, True
    held = thresholds.copy()
    for d in range(len(DIMENSIONS)):
        held[d] = 0.0
        least = minimise(
            problem, Ray(held.copy(), _alone(d).slope), [counts], budget, bound=bounds[d], effort=effort, seed=seed
        )
        counts, proved = least.counts, proved and least.proved
        held[d] = least.t
    return counts, proved


def _next_on_grid(relaxation: float, step: float) -> float:
    """The smallest power of `step`, from 1 up, that is not below the relaxation."""
    powers = max(0, math.ceil(math.log(max(relaxation, 1.0)) / math.log(step) - 1e-9))
    return float(step**powers)
