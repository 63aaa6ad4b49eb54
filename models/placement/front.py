"""The Pareto front of (C_cpu, C_io, C_net): costs that no plan improves in one dimension without losing in another.

The costs that are not yet covered by a point found are a union of boxes {c : c < u}, one for each corner u (a "local
upper bound": Klamroth, Lacour and Vanderpooten, On the representation of the search region in multi-objective
optimization, EJOR 245, 2015; 2 |front| + 1 of them in three dimensions). Each box is searched for a plan: one that is
found is tightened until it is Pareto-optimal, and splits the boxes that contain it; a proof that there is none closes the
box. When no box is left, the front is complete.

With a step above 0 a point z covers all costs c >= z - step, so fewer points are needed, and every plan costs at most
`step` less in any dimension than some point of the front.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

import numpy as np
from pydantic import Field

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.placement.cost import SAME, TOLERANCE, as_vector, costs
from models.placement.feasible import first_feasible
from models.placement.kernels.problem import Floats, Ints
from models.placement.minimum import Effort, Minimiser
from models.placement.problem import DIMENSIONS, Problem
from models.placement.ray import Ray
from models.placement.search.tree import Feasibility
from models.placement.time_limit import Clock, TimeLimit
from models.placement.tuning import any_plan
from models.plan.parts import CostVector, Placement
from models.schema import Format, NonNegative, Ratio

EXACT_UP_TO: Final = 128
"""Tasks up to which the front is exact unless a step is asked for."""
STEP: Final = 0.01
"""The step beyond that."""
TIME_LIMIT_S: Final = 60.0
ANYTHING: Final = 2.0
"""A corner that no cost reaches."""


class FrontPoint(Format):
    """A cost on the front, and a plan that has it."""

    cost: CostVector
    placement: Placement
    status: Literal["optimal", "feasible"] = Field(
        description="optimal: proved that no plan is better in one cost and worse in none; feasible: none was found."
    )


class Front(Format):
    """The points found, by rising cost in cpu, then io, then net."""

    status: Literal["optimal", "feasible"] = Field(
        description="optimal: every point is, and every plan costs at least as much as some point, less the "
        "step; feasible: some of that is not proved."
    )
    step: Ratio = Field(description="How much less than every point an omitted plan may cost.")
    points: tuple[FrontPoint, ...]
    open_corners: tuple[CostVector, ...] = Field(
        description="Further points may lie below these costs: neither found nor excluded."
    )
    nodes: int = Field(ge=0, description="Nodes of search trees visited.")
    seconds: NonNegative | None = Field(description="By the clock that was passed in; None without one.")


def pareto_front(
    dataflow: Dataflow,
    cluster: Cluster,
    *,
    step: float | None = None,
    seed: int = 0,
    clock: Clock | None = None,
    time_limit_s: float | None = TIME_LIMIT_S,
    effort: Effort | None = None,
) -> Front:
    """All costs worth choosing from.

    Args:
        step: 0 for the exact front, or the difference in cost that does not matter; without one, 0 up to 128 tasks
            and 0.01 beyond.
        clock: seconds from any moment; without one there is no time limit, and `seconds` is None.
        effort: how much to search for the least cost in a box; the default proves it for small instances.

    Raises:
        Infeasible: fewer slots than tasks, or proved that memory fits nowhere.
        SluiceError: no plan was found that fits the workers' memory, and none was excluded.
    """
    if step is not None and not 0 <= step < 1:
        raise InvalidInput(f"0 <= step < 1 must hold, since costs lie between 0 and 1, but got {step}")
    problem = Problem.of(dataflow, cluster)
    if step is None:
        step = 0.0 if problem.tasks <= EXACT_UP_TO else STEP
    hunt = _Hunt(problem, step, TimeLimit(clock, time_limit_s), effort or Effort(), seed)
    hunt.start()
    while hunt.zones and not hunt.time.spent:
        hunt.search(hunt.next_zone())
    return hunt.front()


@dataclass
class _Efficient:
    cost: Floats
    counts: Ints
    proved: bool


@dataclass
class _Hunt:
    """Points found so far, and the boxes that are left to search."""

    problem: Problem
    step: float
    time: TimeLimit
    effort: Effort
    seed: int
    found: list[_Efficient] = field(default_factory=list)
    zones: list[Floats] = field(default_factory=lambda: [np.full(len(DIMENSIONS), ANYTHING)])
    doubtful: list[Floats] = field(default_factory=list)
    """Corners of boxes whose search was inconclusive."""
    bounds: Floats = field(default_factory=lambda: np.zeros(len(DIMENSIONS)))
    """(3,): proved least cost in each dimension alone."""

    def start(self) -> None:
        """Find the least cost in each dimension alone: ends of the front, and bounds of all boxes."""
        counts = any_plan(self.problem, self.time, self.seed)
        for d in range(len(DIMENSIONS)):
            order = [(d + k) % len(DIMENSIONS) for k in range(len(DIMENSIONS))]
            self.bounds[d] = self._add(counts, np.ones(len(DIMENSIONS)), order)

    def next_zone(self) -> Floats:
        """Take the largest remaining box, so that a front cut short by time is spread out."""
        sizes = [float(np.prod(np.minimum(u, 1.0) - np.minimum(self.bounds, u))) for u in self.zones]
        return self.zones.pop(int(np.argmax(sizes)))

    def search(self, corner: Floats) -> None:
        """Find a plan that costs less than `corner` (3,) in every dimension, or close the box."""
        below = self._below(corner)
        found = first_feasible(self.problem, below, self.time, self.seed)
        if found.verdict is Feasibility.INFEASIBLE:
            return
        if found.verdict is Feasibility.UNKNOWN or found.counts is None:
            self.doubtful.append(corner)
            return
        self.zones.append(corner)
        self._add(found.counts, below, range(len(DIMENSIONS)))

    def front(self) -> Front:
        """The front found so far."""
        cost = np.array([f.cost for f in self.found])
        kept = [f for f, own in zip(self.found, efficient(cost), strict=True) if own]
        kept.sort(key=lambda f: tuple(f.cost))
        left = [u for u in [*self.doubtful, *self.zones] if self._possible(u)]
        proved = not left and all(f.proved for f in kept)
        return Front(
            status="optimal" if proved else "feasible",
            step=self.step,
            points=tuple(
                FrontPoint(
                    cost=as_vector(f.cost),
                    placement=self.problem.placement(f.counts),
                    status="optimal" if f.proved else "feasible",
                )
                for f in kept
            ),
            open_corners=tuple(as_vector(np.minimum(u, 1.0)) for u in left),
            nodes=self.time.nodes,
            seconds=self.time.seconds,
        )

    def _possible(self, corner: Floats) -> bool:
        """Whether the single minima leave room below a corner."""
        return bool((self._below(corner) >= np.maximum(self.bounds - TOLERANCE, 0.0)).all())

    def _below(self, corner: Floats) -> Floats:
        """(3,): the largest costs that are less than the corner by more than the tolerance of loads."""
        span = self.problem.most - self.problem.least
        least = self.problem.least / np.where(span <= SAME * self.problem.most, np.inf, span)
        return np.where(corner >= ANYTHING, 1.0, np.minimum(corner - TOLERANCE * (1 + 4 * (least + corner)), 1.0))

    def _add(self, counts: Ints, within: Floats, order: Sequence[int]) -> float:
        """Minimise a plan's costs one after the other, in this order, and split the boxes at the resulting point.

        Returns:
            the proved bound of the first minimum.
        """
        held, bounds, proved = within.copy(), [], True
        minimiser = Minimiser(self.problem, self.time, self.effort, self.seed)
        for d in order:
            slope = np.zeros(len(DIMENSIONS))
            slope[d], held[d] = 1.0, 0.0
            ray, known = Ray(held.copy(), slope), float(self.bounds[d])
            least = minimiser.minimise(ray, [counts], known)
            counts, proved, held[d] = least.counts, proved and least.proved, least.t
            bounds.append(min(least.bound, least.t))
        cost = costs(self.problem, counts)
        self.found.append(_Efficient(cost, counts, proved))
        self.zones = [u for u in split(self.zones, cost - self.step) if self._possible(u)]
        return bounds[0]


def split(zones: list[Floats], point: Floats) -> list[Floats]:
    """The corners of the boxes that remain when {c : c >= point} is taken out of the boxes below `zones`."""
    hit = [u for u in zones if (point < u).all()]
    rest = [u for u in zones if not (point < u).all()]
    parts = [np.where(np.arange(len(u)) == j, point, u) for u in hit for j in range(len(u))]
    remaining = rest.copy()
    for part in sorted(parts, key=lambda u: -float(u.sum())):
        if not any((part <= other).all() for other in remaining):
            remaining.append(part)
    return remaining


def efficient(cost: Floats) -> list[bool]:
    """Which rows of (k, 3) are better than every other in some column; of equal rows, the first."""
    return [
        not any(
            (other <= own + TOLERANCE).all() and ((other < own - TOLERANCE).any() or j < i)
            for j, other in enumerate(cost)
            if j != i
        )
        for i, own in enumerate(cost)
    ]
