"""The verdict over groups of cells: which policy to run, by how much it is cheaper than the next best, and what is not held.

The rule: the policy that attains the objective in the most groups; of several, the one with the fewest task-hours at equal
attainment in all groups that these attain; if none attains it anywhere, the one with the lowest mean of least late shares.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from pipelines.arena.scoring.frontier import AttainedCost
from pipelines.arena.scoring.runs import CostDifference, cost_difference
from pipelines.arena.scoring.scores import GroupScore

_NAMED: Final = 3
"""Most groups that a sentence names."""


@dataclass(frozen=True)
class PolicyVerdict:
    """Which policy to run, and why."""

    order: tuple[str, ...]
    """All policies, the best first."""
    held: dict[str, int]
    """Groups in which each attains the objective."""
    difference: CostDifference | None
    """Task-hours of the best over those of the next best, less 1; None if no group is attained by both."""
    sentence: str

    @property
    def policy(self) -> str:
        """The one to run."""
        return self.order[0]


def verdict(groups: Sequence[GroupScore]) -> PolicyVerdict:
    """The verdict over groups with the same policies, seeds and attainment."""
    order = _ordered(groups)
    held = {policy: sum(group.held_by(policy) for group in groups) for policy in order}
    difference = None
    if len(order) > 1:
        runs = [[group.score(policy).runs for group in groups] for policy in order[:2]]
        difference = cost_difference(runs[0], runs[1], groups[0].attainment)
    return PolicyVerdict(tuple(order), held, difference, _sentence(groups, order, held, difference))


def _ordered(groups: Sequence[GroupScore]) -> list[str]:
    policies = [score.policy for score in groups[0].policies]
    held = {policy: sum(group.held_by(policy) for group in groups) for policy in policies}

    def order(policy: str) -> tuple[float, float, float]:
        peers = [other for other in policies if held[other] == held[policy]]
        common = [group for group in groups if all(group.held_by(peer) for peer in peers)]
        late = fmean(group.score(policy).best.late_share for group in groups)
        return (-held[policy], math.fsum(_cost(group, policy) for group in common), late)

    return sorted(policies, key=order)


def _cost(group: GroupScore, policy: str) -> float:
    cost = group.score(policy).cost
    assert isinstance(cost, AttainedCost)
    return cost.task_hours


def _sentence(
    groups: Sequence[GroupScore], order: Sequence[str], held: dict[str, int], difference: CostDifference | None
) -> str:
    best, objective_s = order[0], groups[0].objective_s
    aim = f"{100 * groups[0].attainment:.4g} % of records within {objective_s} s"
    if not held[best]:
        late = fmean(group.score(best).best.late_share for group in groups)
        closest = (
            f"{best} comes closest, with {_percent(late)} late" if len(order) > 1 else f"{_percent(late)} are late"
        )
        return f"No policy holds {aim}: {closest}."
    where = "" if held[best] == len(groups) else f" in {held[best]} of {len(groups)} cells"
    parts = [f"Run {best}: it holds {aim}{where}{_compared(groups, order, held, difference)}"]
    return "; ".join([*parts, *_missed(groups, order)]) + "."


def _compared(
    groups: Sequence[GroupScore], order: Sequence[str], held: dict[str, int], difference: CostDifference | None
) -> str:
    if len(order) == 1:
        hours = math.fsum(_cost(group, order[0]) for group in groups if group.held_by(order[0]))
        return f" with {hours:,.1f} task-hours, and was replayed alone"
    following = order[1]
    if difference is None:
        return ", and no other policy does" if not held[following] else f", where {following}, the next best, does not"
    in_fewer = "" if held[following] == held[order[0]] else f", which holds it in {held[following]}"
    return f" with {_more(difference.share)} task-hours than {following}, the next best{in_fewer} ({_sure(difference)})"


def _missed(groups: Sequence[GroupScore], order: Sequence[str]) -> list[str]:
    nowhere = [g.name for g in groups if not any(g.held_by(policy) for policy in order)]
    others = [g.name for g in groups if not g.held_by(order[0]) and g.name not in nowhere]
    parts = []
    if nowhere:
        parts.append(f"nothing holds it on {_listed(nowhere)}")
    if others:
        parts.append(f"others hold it on {_listed(others)}")
    return parts


def _sure(difference: CostDifference) -> str:
    if difference.seeds == 1:
        return "one seed, so this may be chance"
    if difference.interval is None:
        return f"not sure over {difference.seeds} seeds, in some of which one of the two misses it"
    low, high = difference.interval
    seeds = f"over {difference.seeds} seeds"
    if low < 0 < high:
        return f"{_more(low)} to {_more(high)} {seeds}, so this may be chance"
    low, high = sorted((abs(low), abs(high)))
    ends = dict.fromkeys([f"{100 * low:.0f}", f"{100 * high:.0f}"])
    return f"{' to '.join(ends)} % {seeds}"


def _more(share: float) -> str:
    return f"{100 * abs(share):.0f} % {'fewer' if share <= 0 else 'more'}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.1 else f"{100 * share:.0f} %"


def _listed(names: Sequence[str]) -> str:
    shown = list(names[:_NAMED])
    if len(names) > _NAMED:
        return f"{', '.join(shown)} and {len(names) - _NAMED} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
