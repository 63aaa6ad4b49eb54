"""The first plan within given thresholds: fast where there is one, and a proof where there is none."""

from typing import Final

from models.placement.budget import Budget
from models.placement.cost import load_limits
from models.placement.problem import Floats, Problem
from models.placement.repair import Repair
from models.placement.search import Found, Verdict, search_first

FIRST_STEPS: Final = 300
"""Repair steps before the tree is searched."""
FIRST_TRIES: Final = 1_000_000
"""Tries in the tree before the repair goes on."""
MORE_STEPS: Final = 5_000
MOST_TRIES: Final = 50_000_000
"""Then the tree is searched until this, or the time, is used up."""


def first_feasible(problem: Problem, thresholds: Floats, budget: Budget, seed: int = 0) -> Found:
    """A plan whose costs stay within `thresholds` (3,), a proof that there is none, or neither.

    Longest processing time first with tabu steps finds a plan of 1,100 tasks in a millisecond. The tree search takes
    over where that fails, and is what proves.

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
    while not budget.spent and repair.steps < MORE_STEPS:
        if repair.run(FIRST_STEPS):
            return Found(Verdict.FEASIBLE, repair.counts)
    found = search_first(problem, limits, budget, MOST_TRIES)
    return found if found.verdict is not Verdict.UNKNOWN else Found(Verdict.UNKNOWN, repair.counts)
