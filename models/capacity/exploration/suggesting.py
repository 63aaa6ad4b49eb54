"""The budget whose measurement is expected to narrow the interval most per minute of the testbed.

scikit-optimize maximises the acquisition, minimising its negative: the first budgets fill the space evenly, the rest are
chosen by Expected Improvement of a Gaussian process. The acquisition costs milliseconds, but spaces may have thousands
of budgets.

No number of slots is measured twice as long as others are left: a repetition shows how much two measurements of one size
differ, which is less than neighbouring sizes do where key groups do not divide by the tasks, or windows fire together.
"""

import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from threadpoolctl import threadpool_limits

from models.capacity.exploration.narrowing import Narrowing
from models.capacity.exploration.space import Axes, SearchSpace
from models.capacity.observation import Budget
from models.schema import Format, NonNegative, Positive

EVEN_POINTS: Final = 12
CHOSEN_POINTS: Final = 6


class MeasuringTime(Format):
    """What a measurement costs."""

    search_s: Positive
    """Of the longest MST search, seconds."""
    deployment_s: NonNegative
    """Of deploying a configuration, seconds."""

    def minutes(self, budget: Budget, space: SearchSpace, profiled_mb: Collection[float]) -> float:
        """Minutes of the testbed that a budget takes.

        Args:
            profiled_mb: memory sizes with a single-task run, whose rates BIDS2 needs; any other takes one more.
        """
        runs = 1 if budget.task_slots == space.min_slots or budget.memory_mb in profiled_mb else 2
        return runs * (self.search_s + self.deployment_s) / 60


@dataclass(frozen=True)
class Suggestion:
    """A budget, and what its measurement is expected to do."""

    budget: Budget
    log_width: float
    """Expected of the interval after it, E[W|b] of `narrowing`."""
    minutes: float


def suggest(
    narrowing: Narrowing, space: SearchSpace, time: MeasuringTime, measured: Sequence[Budget], seed: int
) -> Suggestion:
    """The best budget of the space; of equally good ones the first that was looked at.

    Args:
        measured: so far.
        seed: of the Gaussian process and its acquisition.
    """
    from skopt import Optimizer  # Takes seconds to import.

    axes, tried = Axes(space, "log-uniform"), dict[Budget, Suggestion]()
    profiled_mb = {b.memory_mb for b in measured}
    known = {b.task_slots for b in measured}
    new = np.array([n for n in range(space.min_slots, space.max_slots + 1) if n not in known])

    def cost(wanted: Budget) -> float:
        """Minus what is gained per minute, by the nearest number of slots that was not measured yet."""
        budget = wanted
        if len(new) and wanted.task_slots in known:
            budget = wanted.model_copy(update={"task_slots": int(new[np.argmin(np.abs(new - wanted.task_slots))])})
        if budget not in tried:
            minutes = time.minutes(budget, space, profiled_mb)
            tried[budget] = Suggestion(budget, narrowing.expected(budget), minutes)
        return (tried[budget].log_width - narrowing.log_width) / tried[budget].minutes

    # The matrices are small: more threads only wait for each other, and round differently.
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The objective has been evaluated at point")
        corners = list(space.corners)
        costs = [cost(budget) for budget in corners]
        if axes.dimensions:
            optimizer = Optimizer(
                axes.dimensions,
                base_estimator="GP",
                acq_func="EI",
                acq_optimizer="sampling",
                n_initial_points=EVEN_POINTS,
                initial_point_generator="hammersly",
                avoid_duplicates=False,  # a repeat costs nothing here
                random_state=seed,
            )
            optimizer.tell([axes.point(budget) for budget in corners], costs)
            for left in reversed(range(EVEN_POINTS - len(corners) + CHOSEN_POINTS)):
                point = optimizer.ask()
                optimizer.tell(point, cost(axes.budget(point)), fit=left > 0)  # the last point decides on no other
    return min(tried.values(), key=lambda found: (found.log_width - narrowing.log_width) / found.minutes)
