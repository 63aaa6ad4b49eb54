"""The fewest tasks that hold a latency objective all along without a rescale: what an autoscaler has to beat.

The policy `static` is replayed with factors on the peak of the workload; more tasks hold what fewer do, so the factor is
found by bisection. The result is the smallest factor found that holds the objective, within a step of TOLERANCE.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from pipelines.arena.replays.cell import Cell, ReplayOutcome
from pipelines.arena.replays.compute import run_cell

FEWEST_FACTOR: Final = 0.05
TOLERANCE: Final = 1.03
"""Ratio of neighbouring factors at which the search ends."""
MOST_FACTOR: Final = 20.0


@dataclass(frozen=True)
class FixedDeployment:
    """A replay of `static`."""

    factor: float
    outcome: ReplayOutcome


def fewest_tasks(
    cell: Cell,
    limit_s: Literal[1, 10, 60],
    attainment: float,
    run: Callable[[Cell], ReplayOutcome] = lambda cell: run_cell(cell).outcome,
) -> FixedDeployment | None:
    """The cheapest fixed deployment in which `attainment` of the records wait at most `limit_s`; None if there is none.

    Args:
        cell: its policy and settings are replaced.
        run: how a cell is replayed.
    """

    def replayed(factor: float) -> FixedDeployment:
        settings = {"rate": max(cell.workload.peak_rate, 1.0), "factor": factor}
        return FixedDeployment(factor, run(cell.model_copy(update={"policy": "static", "settings": settings})))

    def holds(found: FixedDeployment) -> bool:
        share = getattr(found.outcome, f"within_{limit_s}_s")
        return share is None or share >= attainment

    best = replayed(MOST_FACTOR)
    if not holds(best):
        return None
    low = FEWEST_FACTOR
    while best.factor / low > TOLERANCE:
        found = replayed(float(np.sqrt(low * best.factor)))
        if holds(found):
            best = found
        else:
            low = found.factor
    return best
