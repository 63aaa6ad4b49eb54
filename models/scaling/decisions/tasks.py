"""Rules for single operators: wanted tasks, rounding within limits, and waiting after a rescale."""

import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from models.scaling.decisions.change import changes_in_words, runs_already
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import OperatorMetrics, Rates
from models.wording import tasks as task_count

_CLOCK_S: Final = 1e-6
"""Times closer than this are equal."""
_ROUNDING: Final = 1e-9
"""Relative excess over a whole number that counts as rounding."""


def round_up(tasks: float) -> int:
    """The ceiling (DS2 Eq. 7), at least 1; an excess within rounding does not count."""
    return max(1, math.ceil(tasks * (1 - _ROUNDING)))


class Wanted(NamedTuple):
    """The tasks that a rule wants for one operator. (A tuple, since there may be 1,000 operators.)"""

    tasks: int
    why: str
    exact: float
    """Tasks before rounding and limits."""

    @classmethod
    def unchanged(cls, metrics: OperatorMetrics, why: str) -> "Wanted":
        return cls(metrics.parallelism, why, metrics.parallelism)

    def limited(self, tasks: int) -> "Wanted":
        """The same, with only `tasks` granted."""
        return self if tasks == self.tasks else Wanted(tasks, self.why, self.exact)


def decision_of(wanted: Mapping[str, Wanted], rates: Rates) -> Decision:
    """The wanted tasks, with the current memory."""
    return Decision(
        parallelism={name: want.tasks for name, want in wanted.items()},
        exact={name: want.exact for name, want in wanted.items()},
        memory_mb={name: m.memory_mb for name, m in rates.operators.items() if m.memory_mb is not None},
        reasons={name: _reason(want, rates.operators[name].parallelism) for name, want in wanted.items()},
    )


def _reason(want: Wanted, before: int) -> str:
    change = "as now" if want.tasks == before else f"instead of {before}"
    return f"{want.why}, so {task_count(want.tasks)}, {change}"


def recommend(wanted: Mapping[str, Wanted], rates: Rates, title: str, otherwise: str) -> Recommendation:
    """Deploy the wanted tasks, or give the reason `otherwise` if they already run."""
    decision = decision_of(wanted, rates)
    if runs_already(decision, rates):
        return Recommendation(None, otherwise)
    largest = max(wanted, key=lambda name: abs(wanted[name].tasks - rates.operators[name].parallelism))
    return Recommendation(
        decision, f"{title} scales {changes_in_words(decision, rates)}; {largest}: {wanted[largest].why}."
    )


def cooling_down(facts: Facts, cooldown_s: float) -> str | None:
    """Why to wait for the job to settle after a rescale (evaluation paper, section 6.1); None once it has."""
    if facts.last_rescale is None:
        return None
    left_s = facts.last_rescale.ended_s + cooldown_s - facts.time_s
    return (
        f"{left_s:,.0f} s of the cooldown of {cooldown_s:,.0f} s after a rescale are left."
        if left_s > _CLOCK_S
        else None
    )
