"""What a plan promises for its objectives, beside what a job did."""

from typing import Final

from pydantic import Field

from benchmarks.objectives.checking import Checked
from benchmarks.objectives.scores import RecoveryScore
from models.objectives.objectives import ObjectiveKind, RecoveryObjective
from models.plan.content import Plan
from models.schema import Format, Label

FLAT: Final = 0.01
"""Share of the rate by which a lag may grow and be flat."""


class Verdict(Format):
    """One objective."""

    kind: ObjectiveKind
    stated: Label
    promised: Label = Field(description="By the plan.")
    measured: Label
    kept: bool


def verdicts(plan: Plan, made: Checked) -> list[Verdict]:
    """Of each objective of the plan, its rate included; the check is of its job, or of one with fewer tasks."""
    assert plan.objectives is not None
    found = []
    for one in plan.objectives.outcomes:
        measured, kept = _measured(plan, one.kind, made)
        promised = "-" if one.predicted is None else f"{one.predicted:,.4g} {one.unit}"
        found.append(Verdict(kind=one.kind, stated=one.stated, promised=promised, measured=measured, kept=kept))
    return found


def _measured(plan: Plan, kind: ObjectiveKind, made: Checked) -> tuple[str, bool]:
    assert plan.objectives is not None
    asked = plan.objectives.asked
    if kind == "price" and asked.price is not None:
        return f"{made.usd_per_hour:g} USD/h", made.usd_per_hour <= float(asked.price.usd_per_hour)
    flat = made.lag.grew_by <= FLAT * made.rate
    if kind == "recovery" and asked.recovery is not None and made.recovery is not None:
        # As much may have waited before the outage as after it.
        return _recovered(asked.recovery, made.recovery) if flat else ("lag grew before it", False)
    if kind == "lag" and asked.lag is not None:
        return f"{made.lag.quantile_s:.1f} s", made.lag.quantile_s <= asked.lag.limit_s
    return "lag flat" if flat else f"lag grows by {made.lag.grew_by:,.0f}/s", flat


def _recovered(asked: RecoveryObjective, seen: RecoveryScore) -> tuple[str, bool]:
    """The time is counted from the end of the outage: where a restart is stated, from the start of the job on."""
    restart_s = seen.restart_s if asked.restart_s else 0.0
    if seen.recovery_s is None:
        return f"not in {restart_s + seen.watched_s:.0f} s", False
    took = restart_s + seen.recovery_s
    return f"{took:.0f} s", took <= asked.within_s
