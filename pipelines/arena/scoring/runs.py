"""The replays of a policy as numbers by setting and seed, and how far its figures depend on the seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from models.scaling.policies import POLICIES
from pipelines.arena.grid import Finished
from pipelines.arena.scoring.frontier import AttainedCost, FrontierPoint, attainment_cost, frontier

RESAMPLES: Final = 1000
_SEED: Final = 1
INTERVAL: Final = (0.05, 0.95)
"""Ends of a 90 % interval."""


@dataclass(frozen=True)
class SettingRuns:
    """A policy with one value of its knob, by seed; the mean over the starts of a seed."""

    value: float
    """Of the knob."""
    task_hours: tuple[float, ...]
    late_share: tuple[float, ...]
    """Share of records that wait longer than the objective, 0-1; 0 where none arrived."""

    def point(self, weights: Sequence[float] | None = None) -> FrontierPoint:
        """The means over the seeds, with these weights, which sum to 1; equal ones by default."""
        if weights is None:
            return FrontierPoint(self.value, fmean(self.task_hours), fmean(self.late_share))
        return FrontierPoint(
            self.value, float(np.dot(weights, self.task_hours)), float(np.dot(weights, self.late_share))
        )


@dataclass(frozen=True)
class CostDifference:
    """Task-hours at equal attainment of one policy over those of another, less 1."""

    share: float
    interval: tuple[float, float] | None
    """90 %, from resampled seeds; None with one seed, or if one of the two does not attain it in a tenth of the samples."""
    seeds: int


def knob_value(one: Finished) -> float:
    """The value of the knob in a replay."""
    return POLICIES[one.cell.policy].knob_value(one.cell.settings)


def setting_runs(value: float, finished: Iterable[Finished], objective_s: int) -> SettingRuns:
    """The replays of one setting."""
    by_seed: dict[int, list[Finished]] = {}
    for one in finished:
        by_seed.setdefault(one.cell.seed, []).append(one)
    own = [by_seed[seed] for seed in sorted(by_seed)]
    return SettingRuns(
        value,
        tuple(fmean(one.outcome.task_hours for one in same) for same in own),
        tuple(fmean(_late_share(one, objective_s) for one in same) for same in own),
    )


def _late_share(one: Finished, objective_s: int) -> float:
    within: float | None = getattr(one.outcome, f"within_{objective_s}_s")
    return 0.0 if within is None else 1.0 - within


def cost_difference(
    one: Sequence[Sequence[SettingRuns]], other: Sequence[Sequence[SettingRuns]], attainment: float
) -> CostDifference | None:
    """How many more task-hours one policy takes than another, in several groups of cells together.

    The interval is a paired bootstrap over seeds (Efron and Tibshirani 1993, sections 8 and 13): a sample draws as many
    seeds as there are, with replacement, the same for both policies and all groups; both frontiers are drawn from its
    means. Groups that one of them does not attain are left out, in a sample as in the whole.

    Args:
        one, other: settings of the policies in each group, all with the same seeds.

    Returns:
        None if there is no group that both attain.
    """
    seeds = len(one[0][0].task_hours)
    whole = _difference(one, other, attainment, None)
    if whole is None:
        return None
    if seeds == 1:
        return CostDifference(whole, None, seeds)
    drawn = np.random.default_rng(_SEED).multinomial(seeds, [1 / seeds] * seeds, RESAMPLES)
    samples, counts = np.unique(drawn, axis=0, return_counts=True)
    found = {i: _difference(one, other, attainment, sample / seeds) for i, sample in enumerate(samples)}
    known = [share for i, share in found.items() if share is not None for _ in range(counts[i])]
    if len(known) < 0.9 * RESAMPLES:
        return CostDifference(whole, None, seeds)
    low, high = np.quantile(known, INTERVAL)
    return CostDifference(whole, (float(low), float(high)), seeds)


def _difference(
    one: Sequence[Sequence[SettingRuns]],
    other: Sequence[Sequence[SettingRuns]],
    attainment: float,
    weights: Sequence[float] | None,
) -> float | None:
    costs = [(_cost(a, attainment, weights), _cost(b, attainment, weights)) for a, b in zip(one, other, strict=True)]
    both = [(a, b) for a, b in costs if a is not None and b is not None]
    total = sum(b for _, b in both)
    return sum(a for a, _ in both) / total - 1 if total > 0 else None


def _cost(settings: Sequence[SettingRuns], attainment: float, weights: Sequence[float] | None) -> float | None:
    cost = attainment_cost(frontier(setting.point(weights) for setting in settings), attainment)
    return cost.task_hours if isinstance(cost, AttainedCost) else None


def by_value(finished: Iterable[Finished]) -> Mapping[float, list[Finished]]:
    """The replays of a policy by the value of its knob, ascending."""
    found: dict[float, list[Finished]] = {}
    for one in finished:
        found.setdefault(knob_value(one), []).append(one)
    return dict(sorted(found.items()))
