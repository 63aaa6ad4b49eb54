"""Threshold auto-tuning (CAPSys section 5.2): the smallest thresholds that a plan meets.

Phase 1: alpha*_d = min C_d with the other dimensions free, d = cpu, io, net.
Phase 2: lambda* = min over plans of max_d C_d / max(alpha*_d, floor), d in D; the thresholds are lambda* max(alpha*,
floor) in D and 1 elsewhere. D are the dimensions that can become a bottleneck (`idle_dimensions`); all of
them where no capacity is stated, as in the paper. The floor replaces minima at or near 0, which no factor would
ever relax.
Last, within these thresholds, the costs are minimised one after the other, each held for the next: cpu, io and net of
D, then of the rest. The result is Pareto-optimal if each of these minima is proved. If it is better than a minimum of
phase 1 (large instances, nothing proved), phase 2 is repeated from there.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import Infeasible, InvalidInput, SluiceError
from models.placement.cost import TOLERANCE, as_vector, costs
from models.placement.feasible import first_feasible
from models.placement.graph.subtasks import assign_subtasks
from models.placement.kernels.problem import Bools, Floats, Ints
from models.placement.minimum import Effort, Minimiser, Minimum
from models.placement.problem import DIMENSIONS, IDLE_SHARE, Problem, idle_dimensions
from models.placement.ray import Ray
from models.placement.results import Tuning
from models.placement.search.tree import NO_THRESHOLDS, Feasibility
from models.placement.time_limit import Clock, TimeLimit

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
    idle_share: float = IDLE_SHARE,
    seed: int = 0,
    clock: Clock | None = None,
    time_limit_s: float | None = TIME_LIMIT_S,
    effort: Effort | None = None,
) -> Tuning:
    """The smallest thresholds that a placement can meet, with that placement.

    The same input gives the same answer as long as the time limit is not reached: the effort is counted in steps.

    Args:
        floor: least threshold to relax from, a cost above 0.
        relaxation_step: factor above 1 between two points of the grid of `grid_relaxation`.
        idle_share: a dimension in which no placement loads a worker to this share of its capacity is left out of the
            relaxation; 0 leaves out none, as in the paper.
        clock: seconds from any moment; without one there is no time limit, and `seconds` is None.
        effort: how much to search for each target; the default proves the optimum of small instances.

    Raises:
        Infeasible: fewer slots than tasks, or proved that memory fits nowhere.
        SluiceError: a plan that fits the workers' memory was neither found nor excluded within the effort.
    """
    if not floor > 0:
        raise InvalidInput(f"the floor must be above 0, since 0 cannot be relaxed by a factor, but got {floor}")
    if not relaxation_step > 1:
        raise InvalidInput(f"the relaxation step must be a factor above 1, but got {relaxation_step}")
    if not 0 <= idle_share <= 1:
        raise InvalidInput(f"the idle share must be a share of a worker's capacity, 0 to 1, but got {idle_share}")
    minimiser = Minimiser(Problem.of(dataflow, cluster), TimeLimit(clock, time_limit_s), effort or Effort(), seed)
    return tuned_by(minimiser, idle_dimensions(dataflow, cluster, idle_share), floor, relaxation_step)


def tuned_by(
    minimiser: Minimiser, idle: dict[str, float], floor: float = FLOOR, relaxation_step: float = RELAXATION_STEP
) -> Tuning:
    """`tune` for a problem that is already compiled.

    Args:
        idle: the dimensions left out of the relaxation, with the load of the worst worker there can be.
    """
    counted = np.array([name not in idle for name in DIMENSIONS])
    return _answer(minimiser.problem, _tuned(minimiser, floor, counted), floor, relaxation_step, idle)


def any_plan(problem: Problem, time: TimeLimit, seed: int) -> Ints:
    """A plan (W, n) within slots and memory.

    Raises:
        Infeasible: proved that there is none.
        SluiceError: none found, none excluded.
    """
    found = first_feasible(problem, NO_THRESHOLDS, time, seed)
    if found.verdict is Feasibility.INFEASIBLE:
        raise Infeasible("the tasks do not fit the memory of the workers, however they are placed; use larger workers")
    if found.verdict is Feasibility.UNKNOWN or found.counts is None:
        raise SluiceError(
            "no placement was found that fits the memory of the workers, and none was proved impossible; "
            "use larger workers, or allow more time"
        )
    return found.counts


@dataclass(frozen=True)
class _Tuned:
    """Results of both phases."""

    single: tuple[Minimum, ...]
    joint: Minimum
    thresholds: Floats
    tight: Ints
    proved: bool
    """All minima that count."""
    pareto_proved: bool
    time: TimeLimit


def _tuned(minimiser: Minimiser, floor: float, counted: Bools) -> _Tuned:
    """Both phases, and the tightening, until it finds no plan better than a minimum of phase 1."""
    problem = minimiser.problem
    plans = [any_plan(problem, minimiser.time, minimiser.seed)]
    single: list[Minimum] = []
    for d in range(len(DIMENSIONS)):
        single.append(minimiser.minimise(_alone(d), plans))
        plans.append(single[-1].counts)
    order = np.argsort(~counted, kind="stable")
    while True:
        ray = _together(single, floor, counted)
        bound = max((m.bound / s for m, s in zip(single, ray.slope, strict=True) if s > 0), default=0.0)
        joint = minimiser.minimise(ray, plans, bound)
        thresholds = np.minimum(ray.base + joint.t * ray.slope, 1.0)
        tight, pareto_proved = _tightened(minimiser, joint.counts, thresholds, order, single)
        plans.append(tight)
        cost = costs(problem, tight)
        better = [bool(cost[d] < m.t - TOLERANCE) for d, m in enumerate(single)]
        if not any(better):
            break
        single = [Minimum(float(cost[d]), tight, m.bound) if better[d] else m for d, m in enumerate(single)]
    proved = joint.proved and all(m.proved for m, own in zip(single, counted, strict=True) if own)
    return _Tuned(tuple(single), joint, thresholds, tight, proved, pareto_proved, minimiser.time)


def _answer(problem: Problem, tuned: _Tuned, floor: float, relaxation_step: float, idle: dict[str, float]) -> Tuning:
    single, joint = tuned.single, tuned.joint
    return Tuning(
        status="optimal" if tuned.proved and tuned.pareto_proved else "feasible",
        bound=joint.bound,
        gap=0.0 if joint.proved else 1 - joint.bound / joint.t,
        nodes=tuned.time.nodes,
        seconds=tuned.time.seconds,
        single=as_vector(np.array([m.t for m in single])),
        single_bound=as_vector(np.array([min(m.bound, m.t) for m in single])),
        single_proved={name: m.proved for name, m in zip(DIMENSIONS, single, strict=True)},
        floor=floor,
        relaxation=joint.t,
        grid_relaxation=_next_on_grid(joint.t, relaxation_step),
        thresholds=as_vector(tuned.thresholds),
        left_out=idle,
        placement=problem.placement(tuned.tight),
        cost=as_vector(costs(problem, tuned.tight)),
        pareto_proved=tuned.pareto_proved,
        subtasks=assign_subtasks(problem, tuned.tight),
    )


def _alone(d: int) -> Ray:
    slope = np.zeros(3)
    slope[d] = 1.0
    return Ray(1 - slope, slope)


def _together(single: Sequence[Minimum], floor: float, counted: Bools) -> Ray:
    """Phase 2: the thresholds t max(alpha*, floor), and 1 in the dimensions that are left out."""
    least = np.maximum([m.t for m in single], floor)
    return Ray(np.where(counted, 0.0, 1.0), np.where(counted, least, 0.0))


def _tightened(
    minimiser: Minimiser, counts: Ints, thresholds: Floats, order: Ints, single: Sequence[Minimum]
) -> tuple[Ints, bool]:
    """Minimise one cost after the other within the thresholds; the plan, and whether it is proved Pareto-optimal."""
    proved, held = True, thresholds.copy()
    for d in order:
        held[d] = 0.0
        least = minimiser.minimise(Ray(held.copy(), _alone(d).slope), [counts], single[d].bound)
        counts, proved, held[d] = least.counts, proved and least.proved, least.t
    return counts, proved


def _next_on_grid(relaxation: float, step: float) -> float:
    """The smallest power of `step`, from 1 up, that is not below the relaxation."""
    powers = max(0, math.ceil(math.log(max(relaxation, 1.0)) / math.log(step) - 1e-9))
    return float(step**powers)
