"""How many task slots a rate needs: the capacity model solved for the slots (StreamBed section 6, model usage).

The smallest whole Pi, at least a given minimum, with

    P(MST(M, Pi) >= rate)             >= 1 - risk       where the user names a risk
    P(MST(M, Pi) >= headroom * rate)  >= 1/2            where the user names a headroom, as StreamBed does

Where an outage must be recovered from, the rate is taken f times, f as `models.objectives.recovery` has it, unless the
headroom is more than that.

The second is the paper's  a phi(M) + b phi(Pi) + c >= headroom * rate  for a single regression, whose distribution is
symmetric. The paper counts Pi up from the minimum; here it is found by bisection.
"""

import math
from typing import Final, Self

import numpy as np
from pydantic import Field, model_validator

from models.capacity.growth.capacity_model import PROBABILITY, CapacityModel
from models.errors import Infeasible, InvalidInput
from models.schema import Format, PositiveInt, Ratio
from models.wording import amount

DEFAULT_RISK: Final = 0.1
DEFAULT_HEADROOM: Final = 1.1
"""StreamBed asks its model for 110 % of the requested rate."""
MOST_TASK_SLOTS: Final = 1_000_000
"""Beyond this an answer is refused: no cluster has so many, and a log model would ask for more than there are atoms."""
MOST_AMOUNT: Final = 1e15
"""MiB or records/s; squares of them, and sums of those, are far from what a float can hold."""
_LADDER: Final = 1.1
"""Ratio of the numbers of slots between which bisection starts."""


class Margin(Format):
    """How safely a rate is planned for: by a risk, or by a headroom."""

    risk: float | None = Field(None, gt=0, le=0.5, description="Probability that the plan does not sustain the rate.")
    headroom: float | None = Field(
        None, ge=1, le=1000, description="Factor on the rate that the median MST must reach."
    )
    catch_up: float = Field(
        1.0,
        ge=1,
        le=1000,
        exclude_if=lambda factor: factor == 1,
        description="Factor on the rate that must be sustained, so that the lag of an outage is read in time.",
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.risk is None) == (self.headroom is None):
            raise ValueError(
                f"either a risk or a headroom must be given, but got (risk={self.risk}, headroom={self.headroom})"
            )
        return self

    @classmethod
    def asked(cls, risk: float | None, headroom: float | None, model: CapacityModel, catch_up: float = 1.0) -> Self:
        """What the user asked for; without a word the default: a risk, or StreamBed's headroom with a regression of its own.

        Args:
            catch_up: factor on the rate that an objective asks for.

        Raises:
            InvalidInput: both were given, or one of them out of bounds.
        """
        check_margin(risk, headroom)
        if risk is None and headroom is None:
            regression = model.regression is not None
            risk, headroom = (None, DEFAULT_HEADROOM) if regression else (DEFAULT_RISK, None)
        return cls(risk=risk, headroom=headroom, catch_up=catch_up)

    @property
    def factor(self) -> float:
        """On the rate that is asked for."""
        return max(self.headroom or 1.0, self.catch_up)

    @property
    def sources_factor(self) -> float:
        """On the rate that sources and scaling policies are planned for."""
        return max(self.headroom or DEFAULT_HEADROOM, self.catch_up)

    @property
    def certainty(self) -> float:
        """Probability with which that must be sustained."""
        return 0.5 if self.risk is None else 1 - self.risk

    def of(self, rate: float) -> str:
        """What is planned for, in words."""
        if self.risk is None:
            return f"{self.factor:.4g} x {amount(rate)} records/s"
        times = f"{self.factor:.4g} x " if self.factor > 1 else ""
        return f"{times}{amount(rate)} records/s, {self.certainty:.0%} sure"


class SlotsInterval(Format):
    """Number of task slots with the range that what is needed lies in with the stated probability."""

    value: PositiveInt
    low: PositiveInt
    high: PositiveInt | None
    """None where no number of slots is sure enough on this evidence."""
    probability: Ratio = PROBABILITY

    @property
    def text(self) -> str:
        """Such as "1,205 slots (934 to 1,630)"."""
        high = "any number" if self.high is None else f"{self.high:,}"
        return f"{self.value:,} slots ({self.low:,} to {high})"


def task_slots_for(model: CapacityModel, memory_mb: float, rate: float, margin: Margin, minimum: int = 1) -> int:
    """The smallest number of task slots that sustains the rate with the margin.

    Args:
        memory_mb: memory of one TaskManager, MiB.
        rate: target, records/s at the sources together.
        minimum: fewest slots to answer, for example one for each operator.

    Raises:
        InvalidInput: a rate or memory not above 0, a minimum below 1.
        Infeasible: no number of slots up to MOST_TASK_SLOTS does.
    """
    check_amounts(memory_mb, rate, minimum)
    slots = _fewest(model, memory_mb, margin.factor * rate, margin.certainty, minimum)
    if slots is None:
        raise Infeasible(_out_of_reach(model, memory_mb, rate, margin))
    return slots


def slots_interval(
    model: CapacityModel,
    memory_mb: float,
    rate: float,
    margin: Margin,
    minimum: int = 1,
    probability: float = PROBABILITY,
) -> SlotsInterval:
    """The range of the number of slots: from the fewest that may do, to the fewest that do almost surely.

    Raises:
        InvalidInput, Infeasible: as `task_slots_for`.
    """
    value = task_slots_for(model, memory_mb, rate, margin, minimum)
    tail, target = (1 - probability) / 2, margin.factor * rate
    low = _fewest(model, memory_mb, target, tail, minimum)
    high = _fewest(model, memory_mb, target, 1 - tail, value)
    return SlotsInterval(value=value, low=min(low or value, value), high=high, probability=probability)


def _fewest(model: CapacityModel, memory_mb: float, target: float, certainty: float, minimum: int) -> int | None:
    """The fewest slots from `minimum` on whose MST reaches the target with this probability; None up to MOST_TASK_SLOTS."""
    steps = math.ceil(math.log(max(1.0, MOST_TASK_SLOTS / minimum)) / math.log(_LADDER)) + 1
    ladder = np.unique(np.minimum(np.ceil(minimum * _LADDER ** np.arange(steps + 1)), max(MOST_TASK_SLOTS, minimum)))
    enough = np.flatnonzero(model.sustains(memory_mb, ladder, target) >= certainty)
    if not len(enough):
        return None
    high = int(ladder[enough[0]])
    low = minimum - 1 if enough[0] == 0 else int(ladder[enough[0] - 1])
    while high - low > 1:
        middle = (low + high) // 2
        if model.sustains(memory_mb, middle, target)[0] >= certainty:
            high = middle
        else:
            low = middle
    return high


def _out_of_reach(model: CapacityModel, memory_mb: float, rate: float, margin: Margin) -> str:
    regression, target = model.regression, margin.factor * rate
    if regression is not None and regression.slots <= 0:
        return (
            f"the {regression.law} law predicts no growth of the MST with more task slots, so {amount(target)} records/s is "
            "never reached; choose another law, or measure more budgets"
        )
    if regression is not None and margin.risk is None:
        most = float(regression.predict(memory_mb, MOST_TASK_SLOTS))
        return (
            f"the {regression.law} law reaches {amount(most)} records/s with {MOST_TASK_SLOTS:,} task slots and "
            f"{memory_mb:,.0f} MiB per TaskManager, less than the {target:,.0f} asked for; lower the rate, or "
            "choose another law"
        )
    sure = float(model.sustains(memory_mb, MOST_TASK_SLOTS, target)[0])
    return (
        f"even {MOST_TASK_SLOTS:,} task slots with {memory_mb:,.0f} MiB per TaskManager sustain {amount(target)} records/s "
        f"with a probability of {sure:.0%} only, less than {margin.certainty:.0%}; measure budgets with more slots, lower the "
        "rate, or accept more risk"
    )


def check_amounts(memory_mb: float, rate: float, minimum: int = 1) -> None:
    for name, value in (("rate", rate), ("memory", memory_mb)):
        if not 0 < value <= MOST_AMOUNT:
            raise InvalidInput(f"the {name} must be finite and above 0, and at most {MOST_AMOUNT:g}, but got {value}")
    if minimum < 1:
        raise InvalidInput(f"the fewest task slots must be at least 1, but got {minimum}")


def check_margin(risk: float | None, headroom: float | None) -> None:
    """Refuse what `Margin.asked` cannot take; by itself, for callers that have no model yet.

    Raises:
        InvalidInput: both were given, or one of them out of bounds.
    """
    if risk is not None and headroom is not None:
        raise InvalidInput(
            f"a plan takes either a risk or a headroom, but got both (risk={risk:g}, headroom={headroom:g}); "
            "leave one out"
        )
    if headroom is not None and not 1 <= headroom <= 1000:
        raise InvalidInput(f"the headroom must be 1 to 1000, but got {headroom}; 1.1 plans for 110 % of the rate")
    if risk is not None and not 0 < risk <= 0.5:
        raise InvalidInput(f"the risk must be above 0 and at most 0.5, but got {risk}; 0.1 is 90 % sure")
