"""The smallest thresholds along a ray that some plan meets, and how far that is proved.

A ray gives the thresholds alpha(t) = base + t slope. With slope (1, 0, 0) and base (0, 1, 1) the smallest t is the
minimum of C_cpu alone (phase 1 of section 5.2); with base 0 and slope alpha* it is the common relaxation (phase 2).

Every plan found lowers t to its own cost, and every exhausted search tree raises the proved bound; the next target
lies half way, or right below t once half way has failed. So the answer is the cost of a plan, not a point of a grid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.placement.budget import Budget
from models.placement.certificate import ConfigurationLp, Mixture
from models.placement.cost import SAME, TOLERANCE, costs, load_limits
from models.placement.patterns import WINDOWS, Patterns
from models.placement.problem import Floats, Ints, Problem
from models.placement.repair import Repair
from models.placement.rounding import rounded, whole
from models.placement.search import Verdict, search_first

SHARES: Final = (0.0, 0.01, 0.1, 0.4)
"""Targets for the plan that the LP leads to, as shares of the way from the bound to the best plan so far."""
CLOSE: Final = 0.01
"""Repairs alone stop this share of t above a target that they missed."""
NEGLIGIBLE: Final = 1e-9
"""A t this close to its bound has reached it."""


@dataclass(frozen=True)
class Effort:
    """Work for one target, in units that do not depend on the machine."""

    repair_steps: int = 400
    """Steps from the best plan so far, for a target half way."""
    repair_steps_at_end: int = 3000
    """Steps for the target right below the best plan, from that plan and again from longest processing time first."""
    roundings: int = 12
    """Solutions of the configuration LP that are rounded for each target."""
    tries: int = 300_000
    """Tries in the search tree for a target half way."""
    tries_at_end: int = 3_000_000
    """Tries for the target right below the best plan, where an exhausted tree proves it optimal."""


@dataclass(frozen=True)
class Ray:
    """Thresholds alpha(t) = base + t slope; both (3,)."""

    base: Floats
    slope: Floats

    def reach(self, cost: Floats) -> float:
        """The smallest t >= 0 whose thresholds a plan of this cost meets in the dimensions that t moves."""
        moving = self.slope > 0
        return float(((cost - self.base)[moving] / self.slope[moving]).max(initial=0.0))

    def limits(self, problem: Problem, t: float) -> Floats:
        """(3,): largest loads for a plan that is better than t by more than the tolerance."""
        return self._limits(problem, t, 1 - 3 * TOLERANCE, 0.0)

    def limits_at(self, problem: Problem, t: float) -> Floats:
        """(3,): largest loads for a plan that is as good as t."""
        return self._limits(problem, t, 1 - TOLERANCE, SAME)

    def _limits(self, problem: Problem, t: float, share: float, spare: float) -> Floats:
        alpha = self.base + t * self.slope
        span = problem.most - problem.least
        moved = (problem.least + alpha * span) * share + spare * problem.most
        moving = (self.slope > 0) & (span > SAME * problem.most)
        return np.where(moving, moved, load_limits(problem, np.where(self.slope > 0, 1.0, self.base)))


@dataclass(frozen=True)
class Minimum:
    """The smallest t found, its plan, and the largest t that is proved to be too small."""

    t: float
    counts: Ints
    bound: float

    @property
    def proved(self) -> bool:
        """No plan reaches a smaller t."""
        return self.t <= self.bound + NEGLIGIBLE * max(1.0, self.t)


def minimise(
    problem: Problem,
    ray: Ray,
    plans: Sequence[Ints],
    budget: Budget,
    *,
    bound: float = 0.0,
    effort: Effort | None = None,
    seed: int = 0,
) -> Minimum:
    """The smallest t of a ray.

    Args:
        plans: (W, n) each, within the ray's base where t does not move it; the best of them is the start.
        bound: a t that is already known to be the least possible.
    """
    effort = effort or Effort()
    best = min(plans, key=lambda counts: ray.reach(costs(problem, counts)))
    start = Minimum(ray.reach(costs(problem, best)), best, bound)
    if start.proved or budget.spent:
        return start
    patterns = _patterns(problem, ray, start, budget, ())
    if patterns is None:
        start = _repaired(problem, ray, start, budget, effort, seed)
        patterns = _patterns(problem, ray, start, budget, WINDOWS)
    if patterns is not None and not budget.spent:
        start = _certified(problem, ray, start, patterns, budget, effort, seed)
    return _search(problem, ray, start, budget, effort, seed)


def _patterns(problem: Problem, ray: Ray, best: Minimum, budget: Budget, windows: Sequence[float]) -> Patterns | None:
    """Patterns that are better than t."""
    limits = ray.limits(problem, best.t)
    return Patterns.within(problem, limits, ray.base, ray.slope, best.t, budget=budget, windows=windows)


def _repaired(problem: Problem, ray: Ray, best: Minimum, budget: Budget, effort: Effort, seed: int) -> Minimum:
    """Lower t by repairs alone, for targets half way to what was doubted last."""
    t, counts, doubted = best.t, best.counts, best.bound
    while t - doubted > CLOSE * t and not budget.spent:
        target = (doubted + t) / 2
        repair = Repair(problem, ray.limits(problem, target), seed, counts)
        if repair.run(effort.repair_steps):
            counts = repair.counts
            t = ray.reach(costs(problem, counts))
        else:
            doubted = target
    return Minimum(t, counts, best.bound)


def _certified(
    problem: Problem, ray: Ray, best: Minimum, patterns: Patterns, budget: Budget, effort: Effort, seed: int
) -> Minimum:
    """Raise the bound by the configuration LP, and lower t to the best plan that its solution leads to."""
    lp = ConfigurationLp(patterns)
    answer = lp.smallest(budget)
    if answer.mixture is None:
        return Minimum(best.t, best.counts, best.t) if answer.impossible else best
    bound = max(best.bound, answer.bound or 0.0)
    reached = float(patterns.reach[answer.mixture.rows].max())
    for share in SHARES:
        target = reached + share * (best.t - reached)
        for plan in _plans_at(problem, ray, patterns, lp, answer.mixture, target, budget, effort, seed):
            t = ray.reach(costs(problem, plan))
            if t < best.t:
                return Minimum(t, plan, bound)
    return Minimum(best.t, best.counts, bound)


def _plans_at(
    problem: Problem,
    ray: Ray,
    patterns: Patterns,
    lp: ConfigurationLp,
    mixture: Mixture,
    t: float,
    budget: Budget,
    effort: Effort,
    seed: int,
) -> Iterator[Ints]:
    """Plans up to t: solutions of the LP rounded and repaired, then one of whole patterns."""
    limits = ray.limits_at(problem, t)
    for attempt in range(effort.roundings):
        if budget.spent:
            return
        other = mixture if attempt == 0 else lp.another(t, seed + attempt)
        if other is not None:
            repair = Repair(problem, limits, seed + attempt, rounded(problem, patterns, other))
            if repair.run(effort.repair_steps):
                yield repair.counts
    plan = None if budget.spent else whole(problem, patterns, mixture, t, budget.left)
    if plan is not None:
        yield plan


def _search(problem: Problem, ray: Ray, start: Minimum, budget: Budget, effort: Effort, seed: int) -> Minimum:
    """Close what is open between t and the bound by repairs and the search tree, half way and then right below t."""
    t, best, bound = start.t, start.counts, start.bound
    doubted = bound
    at_end = False
    while not Minimum(t, best, bound).proved and not budget.spent:
        low = doubted if bound < doubted < t else bound
        target = t if at_end else (low + t) / 2
        limits = ray.limits(problem, target)
        verdict, counts = _try(problem, limits, best, budget, effort, at_end, seed)
        if counts is not None:
            best, t, at_end = counts, ray.reach(costs(problem, counts)), False
        elif verdict is Verdict.INFEASIBLE:
            bound, at_end = target, True
        elif at_end:
            break
        else:
            doubted, at_end = target, True
    return Minimum(t, best, bound)


def _try(
    problem: Problem, limits: Floats, best: Ints, budget: Budget, effort: Effort, at_end: bool, seed: int
) -> tuple[Verdict, Ints | None]:
    """Look for a plan within the limits: repair the best one, search the tree, and at the end repair a fresh one."""
    repair = Repair(problem, limits, seed, best)
    if repair.run(effort.repair_steps):
        return Verdict.FEASIBLE, repair.counts
    found = search_first(problem, limits, budget, effort.tries_at_end if at_end else effort.tries)
    if found.verdict is not Verdict.UNKNOWN or not at_end:
        return found.verdict, found.counts
    fresh = Repair(problem, limits, seed + 1)
    for attempt in (repair, fresh):
        if not budget.spent and attempt.run(effort.repair_steps_at_end):
            return Verdict.FEASIBLE, attempt.counts
    return Verdict.UNKNOWN, None
