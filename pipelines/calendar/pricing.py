"""What a schedule costs: task slots and price of each of its plans, by the registered model, and of the peak's all the time."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from models.calendar.schedule import ScheduledRate
from models.cluster import Cluster
from models.errors import Infeasible
from models.planning.workers import PlannedWorkers
from pipelines.planning.gathering import gather
from pipelines.planning.replan_policy import scaled_for_replan
from pipelines.progress import Quiet
from pipelines.run import PipelineRun
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace


@dataclass(frozen=True)
class SizedRate:
    """What a plan for a rate takes."""

    slots: int | None
    """Slots of all tasks; None where no plan reaches the rate."""
    price_per_hour: Decimal | None
    """USD of the fewest TaskManagers that hold them; None where the cluster states no price, or without a plan."""
    why_not: str | None = None
    """Why no plan reaches the rate."""


@dataclass(frozen=True)
class ScheduleCost:
    """A schedule beside the plan for its highest rate, all the time."""

    slot_hours: float
    peak_slot_hours: float
    dollars: float | None
    """None where a price is unknown."""
    peak_dollars: float | None

    @property
    def saved_share(self) -> float:
        """Of slot hours."""
        return 1 - self.slot_hours / self.peak_slot_hours

    @property
    def saved_dollars(self) -> float | None:
        """None where a price is unknown."""
        return None if self.dollars is None or self.peak_dollars is None else self.peak_dollars - self.dollars


def sized_rates(workspace: Workspace, job: str, rates: Sequence[float]) -> dict[float, SizedRate]:
    """What the plan for each rate takes, as a replan would size and scale it.

    Raises as `gather`; so it does for a plan that was made from a running job, which no registered model sizes.
    """
    plan = PlanStore(workspace).current(job)
    run = PipelineRun.of_plan(workspace, plan, Quiet())
    known = gather(run)
    found = {}
    for rate in sorted(set(rates)):
        try:
            sizing, scaling, _ = scaled_for_replan(known, run, rate)
            workers = PlannedWorkers.of(run.cluster, sizing, scaling, rate)
            found[rate] = SizedRate(scaling.slots, _price(workers.cluster, scaling.slots))
        except Infeasible as error:
            found[rate] = SizedRate(None, None, str(error))
    return found


def cost_of(intervals: Sequence[ScheduledRate], sized: dict[float, SizedRate]) -> ScheduleCost | None:
    """What the intervals cost; None if a rate is out of reach."""
    highest = sized[max(one.rate for one in intervals)]
    parts = [(one.hours, sized[one.rate]) for one in intervals]
    hours = sum(one.hours for one in intervals)
    if highest.slots is None or any(size.slots is None for _, size in parts):
        return None
    slot_hours = sum(length * (size.slots or 0) for length, size in parts)
    priced = [(length, size.price_per_hour) for length, size in parts if size.price_per_hour is not None]
    is_known = len(priced) == len(parts) and highest.price_per_hour is not None
    return ScheduleCost(
        slot_hours=slot_hours,
        peak_slot_hours=hours * highest.slots,
        dollars=sum(length * float(price) for length, price in priced) if is_known else None,
        peak_dollars=hours * float(highest.price_per_hour or 0) if is_known else None,
    )


def _price(cluster: Cluster, slots: int) -> Decimal | None:
    """Of the fewest workers that have the slots, the largest first."""
    total, left = Decimal(0), slots
    for worker in sorted(cluster.workers, key=lambda one: -one.slots):
        if left <= 0:
            break
        if worker.price_per_hour is None:
            return None
        total, left = total + worker.price_per_hour, left - worker.slots
    return total
