"""The numbers of task slots that a twin is simulated with, and the tasks of each operator there."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from models.capacity.bids2 import bids2
from models.capacity.observation import Observation, OperatorRates
from models.job import Job

STEP: Final = 1.5
"""Ratio of a rung to the one before."""
MOST_RUNGS_MEASURED: Final = 8
"""Of the numbers of slots that were measured, so many are simulated, spread evenly in logarithms."""
CLOSE: Final = 1.3
"""Largest ratio of neighbours among the measured rungs: what binds a job changes there from one size to the next."""


def measured_rungs(observations: Sequence[Observation]) -> list[Observation]:
    """An observation for each measured number of slots to simulate, ascending, the fewest and the most included."""
    by_slots: dict[int, Observation] = {}
    for one in sorted(observations, key=lambda o: -o.memory_mb):
        by_slots.setdefault(one.task_slots, one)
    slots = sorted(by_slots)
    if len(slots) <= MOST_RUNGS_MEASURED:
        return [by_slots[n] for n in slots]
    first, last = math.log(slots[0]), math.log(slots[-1])
    steps = MOST_RUNGS_MEASURED - 1
    wanted = [first + (last - first) * i / steps for i in range(steps + 1)]
    nearest = {min(slots, key=lambda n: (abs(math.log(n) - at), n)) for at in wanted}
    return [by_slots[n] for n in sorted(nearest)]


def rungs_between(measured: Sequence[int]) -> list[int]:
    """Numbers of slots that leave no neighbours further apart than CLOSE, as far as whole numbers allow."""
    found = set[int]()
    for low, high in pairwise(measured):
        steps = math.ceil(math.log(high / low) / math.log(CLOSE))
        found |= {round(low * (high / low) ** (i / steps)) for i in range(1, steps)}
    return sorted(found - set(measured))


def larger_rungs(fewest: int, most: int) -> list[int]:
    """Numbers of slots above `fewest`, each STEP times the one before, the last at least `most`."""
    rungs, slots = [], float(fewest)
    while slots < most:
        slots *= STEP
        rungs.append(round(slots))
    return rungs


def tasks_of(job: Job, operators: Sequence[OperatorRates], slots: int) -> tuple[dict[str, int], float]:
    """What BIDS2 makes of so many slots with these rates, and the source rate that it expects.

    Raises:
        Infeasible: the job cannot use so many.
    """
    best = bids2(tuple(operators), slots, job.max_parallelism)
    return best.parallelism, best.source_rate
