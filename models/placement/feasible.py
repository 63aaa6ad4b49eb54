"""The first plan within given thresholds: fast where there is one, and a proof where there is none."""

from typing import Final

import numpy as np

from models.placement.budget import Budget
from models.placement.certificate import ConfigurationLp
from models.placement.cost import load_limits
from models.placement.generated import GeneratedLp
from models.placement.patterns import Patterns
from models.placement.problem import Floats, Ints, Problem
from models.placement.repair import Repair
from models.placement.rounding import rounded, whole
from models.placement.search import Found, Verdict, search_first

FIRST_STEPS: Final = 300
"""Repair steps before anything is proved."""
FIRST_TRIES: Final = 100_000
"""Tries in the tree before the configuration LP is solved."""
ROUNDINGS: Final = 30
"""Solutions of the LP that are rounded."""
MORE_STEPS: Final = 5_000
MOST_TRIES: Final = 50_000_000
"""Then the tree is searched until this, or the time, is used up."""


def first_feasible(problem: Problem, thresholds: Floats, budget: Budget, seed: int = 0, *, threads: int = 1) -> Found:
    """A plan whose costs stay within `thresholds` (3,), a proof that there is none, or neither.

    Longest processing time first with tabu steps finds a plan of 1,100 tasks in a millisecond. Where that fails, a
    short search of the tree proves small instances, and the configuration LP large ones.

    Args:
        threads: for the long search of the tree, when all else has failed.

    Returns:
        the verdict and the plan; when unknown, the plan that came closest, so that its cost can be shown.
    """
    limits = load_limits(problem, thresholds)
    repair = Repair(problem, limits, seed)
    if repair.run(FIRST_STEPS):
        return Found(Verdict.FEASIBLE, repair.counts)
    found = search_first(problem, limits, budget, FIRST_TRIES)
    if found.verdict is not Verdict.UNKNOWN:
        return found
    found = _by_certificate(problem, thresholds, limits, repair.counts, budget, seed)
    if found.verdict is not Verdict.UNKNOWN:
        return found
    while not budget.spent and repair.steps < MORE_STEPS:
        if repair.run(FIRST_STEPS):
            return Found(Verdict.FEASIBLE, repair.counts)
    found = search_first(problem, limits, budget, MOST_TRIES, threads=threads)
    return found if found.verdict is not Verdict.UNKNOWN else Found(Verdict.UNKNOWN, repair.counts)


def _by_certificate(
    problem: Problem, thresholds: Floats, limits: Floats, closest: Ints, budget: Budget, seed: int
) -> Found:
    """Solve the configuration LP at the thresholds: a proof that there is no plan, or a start for one."""
    unknown = Found(Verdict.UNKNOWN, None)
    if budget.spent:
        return unknown
    slope = np.where((thresholds > 0) & (thresholds < 1), thresholds, 0.0)
    base = np.where(slope > 0, 0.0, thresholds)
    patterns = Patterns.within(problem, limits, base, slope, 1.0, budget=budget)
    if patterns is None:
        verdict = GeneratedLp(problem, closest).at(limits, budget)
        return Found(verdict, None) if verdict is Verdict.INFEASIBLE else unknown
    lp = ConfigurationLp(patterns)
    answer = lp.at_all(budget)
    if answer.mixture is None:
        return Found(Verdict.INFEASIBLE, None) if answer.impossible else unknown
    for attempt in range(ROUNDINGS):
        mixture = answer.mixture if attempt == 0 else lp.another(np.inf, seed + attempt)
        if mixture is not None and not budget.spent:
            repair = Repair(problem, limits, seed + attempt, rounded(problem, patterns, mixture))
            if repair.run(FIRST_STEPS):
                return Found(Verdict.FEASIBLE, repair.counts)
    plan = None if budget.spent else whole(problem, patterns, answer.mixture, np.inf, budget.left)
    return unknown if plan is None else Found(Verdict.FEASIBLE, plan)
