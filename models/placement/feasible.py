"""The first plan within given thresholds: quickly if one exists, otherwise a proof that there is none."""

from typing import Final

import numpy as np

from models.placement.cost import load_limits
from models.placement.exact.certificate import ConfigurationLp
from models.placement.exact.generated import GeneratedLp
from models.placement.exact.patterns import Patterns
from models.placement.exact.rounding import rounded
from models.placement.kernels.problem import Floats, Ints
from models.placement.problem import Problem
from models.placement.search.repair import Repair
from models.placement.search.tree import Feasibility, FirstPlan, search_first
from models.placement.time_limit import TimeLimit

FIRST_STEPS: Final = 300
"""Repair steps before anything is proved."""
FIRST_TRIES: Final = 100_000
"""Tries in the tree before the configuration LP is solved."""
ROUNDINGS: Final = 30
"""Solutions of the LP that are rounded."""
MORE_STEPS: Final = 5_000
MOST_TRIES: Final = 50_000_000
"""Tries of the final search of the tree, unless time runs out first."""


def first_feasible(problem: Problem, thresholds: Floats, time: TimeLimit, seed: int = 0) -> FirstPlan:
    """A plan whose costs stay within `thresholds` (3,), a proof that there is none, or neither.

    Longest processing time first with tabu steps finds a plan of 1,100 tasks in a millisecond. Where that fails, a
    short search of the tree proves small instances, and the configuration LP large ones.

    Returns:
        the verdict and the plan; when unknown, the plan that came closest, so that its cost can be shown.
    """
    limits = load_limits(problem, thresholds)
    repair = Repair(problem, limits, seed)
    if repair.run(FIRST_STEPS):
        return FirstPlan(Feasibility.FEASIBLE, repair.counts)
    found = search_first(problem, limits, time, FIRST_TRIES)
    if found.verdict is not Feasibility.UNKNOWN:
        return found
    found = _by_certificate(problem, thresholds, limits, repair.counts, time, seed)
    if found.verdict is not Feasibility.UNKNOWN:
        return found
    while not time.spent and repair.steps < MORE_STEPS:
        if repair.run(FIRST_STEPS):
            return FirstPlan(Feasibility.FEASIBLE, repair.counts)
    found = search_first(problem, limits, time, MOST_TRIES)
    return found if found.verdict is not Feasibility.UNKNOWN else FirstPlan(Feasibility.UNKNOWN, repair.counts)


def _by_certificate(
    problem: Problem, thresholds: Floats, limits: Floats, closest: Ints, time: TimeLimit, seed: int
) -> FirstPlan:
    """Solve the configuration LP at the thresholds: a proof that there is no plan, or a start for one."""
    unknown = FirstPlan(Feasibility.UNKNOWN, None)
    if time.spent:
        return unknown
    slope = np.where((thresholds > 0) & (thresholds < 1), thresholds, 0.0)
    base = np.where(slope > 0, 0.0, thresholds)
    patterns = Patterns.within(problem, limits, base, slope, 1.0, time=time)
    if patterns is None:
        verdict = GeneratedLp(problem, closest).at(limits, time)
        return FirstPlan(verdict, None) if verdict is Feasibility.INFEASIBLE else unknown
    lp = ConfigurationLp(patterns)
    answer = lp.at_all(time)
    if answer.mixture is None:
        return FirstPlan(Feasibility.INFEASIBLE, None) if answer.impossible else unknown
    for attempt in range(ROUNDINGS):
        mixture = answer.mixture if attempt == 0 else lp.another(np.inf, seed + attempt)
        if mixture is not None and not time.spent:
            repair = Repair(problem, limits, seed + attempt, rounded(problem, patterns, mixture))
            if repair.run(FIRST_STEPS):
                return FirstPlan(Feasibility.FEASIBLE, repair.counts)
    return unknown
