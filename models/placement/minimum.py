"""The smallest thresholds along a ray that a plan meets, with a proved lower bound.

Every plan found lowers t to its own cost, and every exhausted search tree raises the proved bound. The next target is
half way between them, or just below t once half way has failed. The answer is the cost of a plan, not a point of a grid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from models.placement.cost import costs
from models.placement.exact.certificate import ConfigurationLp, Mixture
from models.placement.exact.generated import GeneratedLp
from models.placement.exact.patterns import WINDOWS, Patterns
from models.placement.exact.rounding import rounded
from models.placement.kernels.problem import Floats, Ints
from models.placement.problem import Problem
from models.placement.ray import Ray
from models.placement.search.repair import Repair
from models.placement.search.tree import Feasibility, search_first
from models.placement.time_limit import TimeLimit

SHARES: Final = (0.0, 0.01, 0.1, 0.4)
"""Targets for rounding the LP's solution, as shares of the distance from the bound to the best plan so far."""
NEAR: Final = 1e-5
"""Targets then halve the distance to the largest missed one, until it is this share of t or another is missed."""
CLOSE: Final = 0.01
"""Repairs alone stop this share of t above a target that they missed."""
NEGLIGIBLE: Final = 1e-9
"""A t this close to its bound counts as equal."""


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
class Minimum:
    """The smallest t found, its plan, and the largest t proved to be too small."""

    t: float
    counts: Ints
    bound: float

    @property
    def proved(self) -> bool:
        """No plan reaches a smaller t."""
        return self.t <= self.bound + NEGLIGIBLE * max(1.0, self.t)


@dataclass(frozen=True)
class Minimiser:
    """Finds the smallest t of rays of one problem, within one time limit."""

    problem: Problem
    time: TimeLimit
    effort: Effort = field(default_factory=Effort)
    seed: int = 0

    def minimise(self, ray: Ray, plans: Sequence[Ints], bound: float = 0.0) -> Minimum:
        """The smallest t of a ray.

        Args:
            plans: (W, n) each, within the ray's base where t does not move it; the best of them is the start.
            bound: a t that is already known to be the least possible.
        """
        best = min(plans, key=lambda counts: self._reach(ray, counts))
        start = Minimum(self._reach(ray, best), best, bound)
        if start.proved or self.time.spent:
            return start
        patterns = self._patterns(ray, start, ())
        if patterns is None:
            start = self._repaired(ray, start)
            patterns = self._patterns(ray, start, WINDOWS)
        if self.time.spent or start.proved:
            return start
        start = self._generated(ray, start) if patterns is None else self._certified(ray, start, patterns)
        return self._searched(ray, start)

    def _reach(self, ray: Ray, counts: Ints) -> float:
        return ray.reach(costs(self.problem, counts))

    def _patterns(self, ray: Ray, best: Minimum, windows: Sequence[float]) -> Patterns | None:
        """Patterns that are better than t."""
        limits = ray.limits(self.problem, best.t)
        return Patterns.within(self.problem, limits, ray.base, ray.slope, best.t, time=self.time, windows=windows)

    def _repaired(self, ray: Ray, best: Minimum) -> Minimum:
        """Lower t by repairs alone, with targets half way to the last one missed."""
        t, counts, doubted = best.t, best.counts, best.bound
        while t - doubted > CLOSE * t and not self.time.spent:
            target = (doubted + t) / 2
            repair = Repair(self.problem, ray.limits(self.problem, target), self.seed, counts)
            if repair.run(self.effort.repair_steps):
                counts = repair.counts
                t = self._reach(ray, counts)
            else:
                doubted = target
        return Minimum(t, counts, best.bound)

    def _certified(self, ray: Ray, best: Minimum, patterns: Patterns) -> Minimum:
        """Raise the bound by the configuration LP, and lower t to the best plan rounded from its solution."""
        lp = ConfigurationLp(patterns)
        answer = lp.smallest(self.time)
        if answer.mixture is None:
            return Minimum(best.t, best.counts, best.t) if answer.impossible else best
        return self._lowered(
            ray, Minimum(best.t, best.counts, max(best.bound, answer.bound or 0.0)), lp, answer.mixture
        )

    def _generated(self, ray: Ray, best: Minimum) -> Minimum:
        """The same where the patterns are too many to list."""
        found = GeneratedLp(self.problem, best.counts).smallest(ray, best.t, best.bound, self.time)
        best = Minimum(best.t, best.counts, found.bound)
        lp = ConfigurationLp(found.patterns)
        mixture = lp.solve(int((found.patterns.reach <= found.reached).sum()), self.time)
        return self._lowered(ray, best, lp, mixture) if isinstance(mixture, Mixture) else best

    def _lowered(self, ray: Ray, best: Minimum, lp: ConfigurationLp, mixture: Mixture) -> Minimum:
        """Lower t to the best plan rounded from a solution of the LP, and further towards the largest target missed."""
        reached = float(lp.patterns.reach[mixture.rows].max())
        missed = reached
        for target in (reached + share * (best.t - reached) for share in SHARES):
            lower = self._below(ray, best, lp, mixture, target)
            if lower is not None:
                best = lower
                break
            missed = target
        while best.t - missed > NEAR * best.t and not self.time.spent:
            lower = self._below(ray, best, lp, mixture, (missed + best.t) / 2)
            if lower is None:
                break
            best = lower
        return best

    def _below(self, ray: Ray, best: Minimum, lp: ConfigurationLp, mixture: Mixture, target: float) -> Minimum | None:
        """A plan better than the best so far that a search up to the target finds."""
        for plan in self._plans_at(ray, lp, mixture, target):
            t = self._reach(ray, plan)
            if t < best.t:
                return Minimum(t, plan, best.bound)
        return None

    def _plans_at(self, ray: Ray, lp: ConfigurationLp, mixture: Mixture, t: float) -> Iterator[Ints]:
        """Plans up to t: solutions of the LP, rounded and repaired."""
        limits = ray.limits_at(self.problem, t)
        for attempt in range(self.effort.roundings):
            if self.time.spent:
                return
            other = mixture if attempt == 0 else lp.another(t, self.seed + attempt)
            if other is not None:
                start = rounded(self.problem, lp.patterns, other)
                repair = Repair(self.problem, limits, self.seed + attempt, start)
                if repair.run(self.effort.repair_steps):
                    yield repair.counts

    def _searched(self, ray: Ray, start: Minimum) -> Minimum:
        """Close the gap between t and the bound by repairs and the search tree, half way and then just below t."""
        t, best, bound = start.t, start.counts, start.bound
        doubted = bound
        at_end = False
        while not Minimum(t, best, bound).proved and not self.time.spent:
            low = doubted if bound < doubted < t else bound
            target = t if at_end else (low + t) / 2
            verdict, counts = self._try(ray.limits(self.problem, target), best, at_end)
            if counts is not None:
                best, t, at_end = counts, self._reach(ray, counts), False
            elif verdict is Feasibility.INFEASIBLE:
                bound, at_end = target, True
            elif at_end:
                break
            else:
                doubted, at_end = target, True
        return Minimum(t, best, bound)

    def _try(self, limits: Floats, best: Ints, at_end: bool) -> tuple[Feasibility, Ints | None]:
        """Look for a plan within the limits: repair the best one, search the tree, and finally repair a new one."""
        effort, time = self.effort, self.time
        repair = Repair(self.problem, limits, self.seed, best)
        if repair.run(effort.repair_steps):
            return Feasibility.FEASIBLE, repair.counts
        tries = effort.tries_at_end if at_end else effort.tries
        found = search_first(self.problem, limits, time, tries)
        if found.verdict is not Feasibility.UNKNOWN or not at_end:
            return found.verdict, found.counts
        fresh = Repair(self.problem, limits, self.seed + 1)
        for attempt in (repair, fresh):
            if not time.spent and attempt.run(effort.repair_steps_at_end):
                return Feasibility.FEASIBLE, attempt.counts
        return Feasibility.UNKNOWN, None
