"""How many task slots a rate needs: the surrogate solved for the slots (StreamBed section 6, model usage).

The smallest whole Pi with  a phi(M) + b phi(Pi) + c >= headroom * rate,  at least a given minimum. The paper counts Pi
up from the minimum; here phi is inverted and the last slot is checked by the prediction itself: the same number.
"""

import math
from typing import Final

import numpy as np

from models.capacity.surrogates import Array, Dataset, Surrogate, features, prediction_band
from models.errors import Infeasible, InvalidInput
from models.schema import Format, PositiveInt, Ratio

DEFAULT_HEADROOM: Final = 1.1
"""StreamBed asks the model for 110 % of the requested rate."""
MOST_TASK_SLOTS: Final = 1_000_000
"""Beyond this an answer is refused: no cluster has so many, and a log model would ask for more than there are atoms."""
MOST_AMOUNT: Final = 1e15
"""MiB or records/s; squares of them, and sums of those, are far from what a float can hold."""


class SlotsInterval(Format):
    """Number of task slots with the range it lies in with the stated probability."""

    value: PositiveInt
    low: PositiveInt
    high: PositiveInt | None
    """None where the lower limit of the band never reaches the rate: no number of slots is safe on this evidence."""
    probability: Ratio = 0.95


def task_slots_for(
    surrogate: Surrogate, memory_mb: float, rate: float, headroom: float = DEFAULT_HEADROOM, minimum: int = 1
) -> int:
    """The smallest number of task slots whose predicted MST reaches `headroom` times the rate.

    Args:
        memory_mb: memory of one TaskManager, MiB.
        rate: target, records/s at the sources together.
        minimum: fewest slots to answer, for example one for each operator.

    Raises:
        InvalidInput: a rate or memory not above 0, a headroom below 1, a minimum below 1.
        Infeasible: the model never reaches the rate, or only with more than MOST_TASK_SLOTS.
    """
    _check(memory_mb, rate, headroom, minimum)
    target = headroom * rate
    if surrogate.predict(memory_mb, minimum) >= target:
        return minimum
    if surrogate.slots <= 0:
        raise Infeasible(
            f"the {surrogate.name} model predicts no growth of the MST with more task slots, so "
            f"{target:,.0f} records/s is never reached; choose another model, or measure more budgets"
        )
    slots = _between(minimum, _solve(surrogate, memory_mb, target))
    # Rounding in the inverse may be off by one slot either way.
    while slots <= MOST_TASK_SLOTS and surrogate.predict(memory_mb, slots) < target:
        slots += 1
    while slots > minimum and surrogate.predict(memory_mb, slots - 1) >= target:
        slots -= 1
    if slots > MOST_TASK_SLOTS:
        most = float(surrogate.predict(memory_mb, MOST_TASK_SLOTS))
        raise Infeasible(
            f"the {surrogate.name} model reaches {most:,.0f} records/s with {MOST_TASK_SLOTS:,} task slots and "
            f"{memory_mb:,.0f} MiB per TaskManager, less than the {target:,.0f} asked for; lower the rate, or "
            "choose another model"
        )
    return slots


def slots_interval(
    surrogate: Surrogate,
    data: Dataset,
    memory_mb: float,
    rate: float,
    headroom: float = DEFAULT_HEADROOM,
    minimum: int = 1,
    probability: float = 0.95,
) -> SlotsInterval:
    """The range of the number of slots, by inverting the prediction band of the MST.

    From the fewest slots from which on the band's upper limit stays at the target or above, to the fewest with which
    its lower limit reaches it.

    Args:
        surrogate: the model, trained with `data`.

    Raises:
        InvalidInput, Infeasible: as `task_slots_for`; InvalidInput where `data` is too small for a band.
    """
    value = task_slots_for(surrogate, memory_mb, rate, headroom, minimum)
    target = headroom * rate
    below = np.arange(minimum, value + 1)
    upper = prediction_band(surrogate.name, data, memory_mb, below, probability)[2]
    short = np.flatnonzero(upper < target)
    low = int(below[short[-1] + 1]) if len(short) else minimum
    return SlotsInterval(
        value=value,
        low=low,
        high=_fewest_safe(surrogate, data, memory_mb, target, value, probability),
        probability=probability,
    )


def _fewest_safe(
    surrogate: Surrogate, data: Dataset, memory_mb: float, target: float, first: int, probability: float
) -> int | None:
    """The fewest slots from `first` on whose lower limit reaches the target; looked for in ever longer ranges."""
    start, length = first, 1024
    while start <= MOST_TASK_SLOTS:
        slots = np.arange(start, min(start + length, MOST_TASK_SLOTS + 1))
        lower = prediction_band(surrogate.name, data, memory_mb, slots, probability)[1]
        reached = np.flatnonzero(lower >= target)
        if len(reached):
            return int(slots[reached[0]])
        start, length = start + length, 2 * length
    return None


def _solve(surrogate: Surrogate, memory_mb: float, target: float) -> float:
    """The real Pi with predict(M, Pi) = target; infinity where it is too large for a float."""
    memory = float(features(surrogate.name, memory_mb, 1.0)[0])
    phi = (target - surrogate.intercept - surrogate.memory * memory) / surrogate.slots
    with np.errstate(over="ignore"):
        inverse: dict[str, Array] = {"linear": np.array(phi), "log": np.expm1(phi), "sqrt": np.square(phi)}
    return float(inverse[surrogate.name])


def _between(minimum: int, slots: float) -> int:
    return max(minimum, math.ceil(min(slots, MOST_TASK_SLOTS + 1)))


def _check(memory_mb: float, rate: float, headroom: float, minimum: int) -> None:
    for name, value in (("rate", rate), ("memory", memory_mb)):
        if not 0 < value <= MOST_AMOUNT:
            raise InvalidInput(f"the {name} must be finite and above 0, and at most {MOST_AMOUNT:g}, but got {value}")
    if not (math.isfinite(headroom) and headroom >= 1):
        raise InvalidInput(f"the headroom must be at least 1, but got {headroom}; 1.1 plans for 110 % of the rate")
    if minimum < 1:
        raise InvalidInput(f"the fewest task slots must be at least 1, but got {minimum}")
