"""What a schedule costs, beside the plan for its highest rate all the time: slot hours, and USD where prices are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from models.calendar.schedule import ScheduledRate


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


def cost_of(intervals: Sequence[ScheduledRate], sized: Mapping[float, SizedRate]) -> ScheduleCost | None:
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
