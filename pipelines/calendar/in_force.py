"""Which versions of a job's plan were in force, when, and what that cost beside the highest one of them all the time.

A version is in force from its application to Flink, or from its publication for a job to which Sluice has applied none. An
application that failed or was rolled back leaves the version before in force.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise

from models.errors import InvalidInput
from models.plan.content import Plan
from pipelines.apply.record import recorded_of_job
from pipelines.calendar.costs import ScheduleCost
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Workspace


@dataclass(frozen=True)
class PlanInForce:
    """A version of a plan while it was in force; UTC."""

    version: int
    begin: datetime
    end: datetime
    rate: float
    """Target rate, records/s."""
    slots: int
    price_per_hour: Decimal | None
    """USD of all TaskManagers; None where unknown."""

    @property
    def hours(self) -> float:
        """How long it was in force."""
        return (self.end - self.begin) / timedelta(hours=1)


@dataclass(frozen=True)
class PlansInForce:
    """The versions of a time, the first one first; none before the first, nor while one may have been whose file is damaged."""

    periods: tuple[PlanInForce, ...]
    are_applied: bool
    """Whether a version counts from its application to Flink, else from its publication."""
    faults: tuple[str, ...]
    """What could not be read, and why."""

    def at(self, instant: datetime) -> PlanInForce | None:
        """The version in force; that of the end counts for the end itself."""
        return next((one for one in reversed(self.periods) if one.begin <= instant <= one.end), None)


@dataclass(frozen=True)
class RecentPlans:
    """The versions published after an instant, and the one before them."""

    plans: tuple[Plan, ...]
    """The first one first."""
    damaged: dict[int, str]
    """Version -> the fault of its file."""


def plans_since(workspace: Workspace, job: str, since: datetime) -> RecentPlans:
    """The versions published after an instant (UTC), and the one before them."""
    store = PlanStore(workspace)
    found: list[Plan] = []
    damaged: dict[int, str] = {}
    for version in reversed(store.versions(job)):
        try:
            plan = store.get(job, version)
        except Damaged as error:
            damaged[version] = str(error)
            continue
        found.append(plan)
        if published_at(plan) <= since:
            break
    return RecentPlans(tuple(found[::-1]), damaged)


def published_at(plan: Plan) -> datetime:
    """When a version was published, UTC."""
    at = datetime.fromisoformat(plan.created_at)
    return at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)


def plans_in_force(workspace: Workspace, job: str, recent: RecentPlans, begin: datetime, end: datetime) -> PlansInForce:
    """The versions in force from `begin` to `end`, UTC.

    Args:
        recent: as `plans_since` gives them for `begin`.
    """
    applied, faults = recorded_of_job(workspace, job)
    ran = [(datetime.fromisoformat(one.started_at), one.version) for one in applied if _holds(one.outcome)]
    starts = ran or [(published_at(plan), plan.version) for plan in recent.plans]
    # When a damaged version was published is unknown, and so when the one before it was no longer in force.
    endless = set() if ran else {version - 1 for version in recent.damaged}
    known, store = {plan.version: plan for plan in recent.plans}, PlanStore(workspace)
    periods = []
    for (first, version), (last, _) in pairwise([*starts, (end, 0)]):
        first, last = max(first, begin), min(last, end)
        if first >= last or version in endless:
            continue
        try:
            plan = known.get(version) or store.get(job, version)
        except (Damaged, InvalidInput) as error:
            faults.append(str(error))
            continue
        price = None if plan.resources is None else plan.resources.price_per_hour
        periods.append(PlanInForce(version, first, last, plan.target_rate, plan.total_slots, price))
    return PlansInForce(tuple(_merged(periods)), bool(ran), tuple(dict.fromkeys([*recent.damaged.values(), *faults])))


def cost_in_force(periods: Sequence[PlanInForce]) -> ScheduleCost | None:
    """What the periods cost, beside the plan for the highest rate among them all that time; None without any."""
    if not periods:
        return None
    highest = max(periods, key=lambda one: (one.rate, one.version))
    hours = sum(one.hours for one in periods)
    priced = [one.hours * float(one.price_per_hour) for one in periods if one.price_per_hour is not None]
    peak = highest.price_per_hour if len(priced) == len(periods) else None
    return ScheduleCost(
        slot_hours=sum(one.hours * one.slots for one in periods),
        peak_slot_hours=hours * highest.slots,
        dollars=None if peak is None else sum(priced),
        peak_dollars=None if peak is None else hours * float(peak),
    )


def _holds(outcome: str) -> bool:
    return outcome in ("applied", "unchanged")


def _merged(periods: Sequence[PlanInForce]) -> list[PlanInForce]:
    """A version that was applied again at once as one period."""
    found: list[PlanInForce] = []
    for one in periods:
        if found and (found[-1].version, found[-1].end) == (one.version, one.begin):
            found[-1] = PlanInForce(one.version, found[-1].begin, one.end, one.rate, one.slots, one.price_per_hour)
        else:
            found.append(one)
    return found
