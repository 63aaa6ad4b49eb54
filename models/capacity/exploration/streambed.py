"""StreamBed's exploration (section 6, candidate search): budgets that lower the error of the regressions.

The corners of the search space come first: the lowest and highest number of slots with the lowest and highest memory.
Then Bayesian optimisation suggests budgets: a Gaussian process over (slots, memory level) models the cost, and
Expected Improvement picks the next point. The cost of a point is the lowest LOOCV error among the candidate regressions
once it was measured (Eq. 9); the corners all get the cost after the last of them, since no model can be judged before.

After at least 3 such measurements the search stops when the cost has grown by more than 10 % since the one before, or
after 20. If the observations do not show then how the candidates extrapolate (Expected Improvement likes the ends of the
range, and any curve passes through two of them), the widest gap is measured until they can, or until there are 20: the
geometric middle of the two neighbouring numbers of slots whose ratio is the largest.

A budget may be suggested again: measurements vary, and a second one of the same point shows how much.
"""

import warnings
from typing import Any, Final

from threadpoolctl import threadpool_limits

from models.capacity.exploration.exploration import Exploration
from models.capacity.exploration.space import Axes, SearchSpace, dataset_of
from models.capacity.growth.dataset import shows_growth
from models.capacity.observation import Budget
from models.errors import InvalidInput
from models.wording import amount

MOST_GROWTH: Final = 0.10
"""The search stops when the error grows by more than this share between two measurements."""
_EXACT: Final = 1e-9
"""Errors below this share of the MST are rounding: a perfect fit does not get worse."""


class StreamBedExploration(Exploration):
    """Expected Improvement of the LOOCV error."""

    def __init__(
        self, space: SearchSpace, seed: int, min_measurements: int = 3, max_measurements: int = 20, kept_back: int = 0
    ) -> None:
        """Begin a search.

        Args:
            seed: of the Gaussian process and its acquisition, 0 to 2^32 - 1.
            min_measurements: fewest after the corners.
            max_measurements: most after the corners.
            kept_back: budgets to measure for the review after that.
        """
        if not 1 <= min_measurements <= max_measurements:
            raise InvalidInput(
                "1 <= min_measurements <= max_measurements must hold, but got "
                f"(min_measurements={min_measurements}, max_measurements={max_measurements})"
            )
        super().__init__(space, kept_back)
        self._min, self._max = min_measurements, max_measurements
        self._suggester = _Suggester(space, seed)
        self._stop: str | None = None
        """Why Bayesian optimisation ended; gaps may be measured after it."""

    def _decide(self, done: int) -> Budget | None:
        corners = list(self.space.corners)
        self._suggester.tell([s.budget for s in self._steps[-1:]] if done else corners, self._steps[-1].error)
        self._stop = self._stop or self._stop_after(done)
        if self._stop is None:
            self._next_by = "bayesian"
            return self._suggester.ask()
        gap = None if done >= self._max or shows_growth(dataset_of(self._measured)) else self._widest_gap()
        self._next_by = "gap"
        if gap is None:
            self._reason = self._stop
        return gap

    def _stop_after(self, done: int) -> str | None:
        """Why to stop after `done` measurements beyond the corners; None to go on."""
        if done < self._min:
            return None
        before, now = self._steps[-2].error, self._steps[-1].error
        if before is not None and now is not None:
            rounding = _EXACT * max(s.mst for s in self._steps)
            if now > before * (1 + MOST_GROWTH) + rounding:
                growth = (
                    f"by {now / before - 1:.0%}, from {amount(before)} to {amount(now)} records/s"
                    if before
                    else "from 0"
                )
                return f"the error grew {growth} with the last of {done} measurements after the corners"
        if done >= self._max:
            return f"the limit of {self._max} measurements after the corners was reached"
        return None


class _Suggester:
    """Bayesian optimisation over slots and memory levels."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        # Imported here because scikit-optimize takes seconds to import, and reading a finished exploration does without.
        from skopt import Optimizer

        self._space = space
        self._axes = Axes(space, "uniform")
        self._optimizer: Any = None
        if self._axes.dimensions:
            self._optimizer = Optimizer(
                self._axes.dimensions,
                base_estimator="GP",
                acq_func="EI",
                n_initial_points=len(space.corners),
                avoid_duplicates=False,  # else a repeat, which is wanted, becomes a random point
                random_state=seed,
            )

    def tell(self, budgets: list[Budget], error: float | None) -> None:
        """The error that the models had once these budgets were measured."""
        if self._optimizer is not None:
            points = [self._axes.point(budget) for budget in budgets]
            # The matrices have a few rows: more threads only wait for each other, and round differently.
            with threadpool_limits(limits=1, user_api="blas"):
                self._optimizer.tell(points, [error] * len(points))

    def ask(self) -> Budget:
        """The next budget; where nothing varies, the only one there is."""
        if self._optimizer is None:
            return self._space.corners[0]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The objective has been evaluated at point")
            return self._axes.budget(self._optimizer.ask())
