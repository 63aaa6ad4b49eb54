"""Which budget to measure next (StreamBed section 6, candidate search).

The corners of the search space come first: the lowest and highest number of slots with the lowest and highest memory.
Then Bayesian optimisation suggests budgets: a Gaussian process over (slots, memory level) models the cost, and
Expected Improvement picks the next point. The cost of a point is the lowest LOOCV error among the candidate regressions
once it was measured (Eq. 9); the corners all get the cost after the last of them, since no model can be judged before.

After at least 3 such measurements the search stops when the cost has grown by more than 10 % since the one before, or
after 20. If the observations do not show then how the candidates extrapolate (Expected Improvement likes the ends of the
range, and any curve passes through two of them), the widest gap is measured until they can, or until there are 20: the
geometric middle of the two neighbouring numbers of slots whose ratio is the largest.

A budget may be suggested again: measurements vary, and a second one of the same point shows how much.

After its end an exploration measures budgets to keep back: no model is fitted to them, so that the review can judge
models by observations they have not seen. They lie in the widest gaps, too, or repeat the last corner if there is none.
"""

import itertools
import math
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, Literal, Self

import numpy as np
from pydantic import Field, model_validator
from threadpoolctl import threadpool_limits

from models.capacity.growth.dataset import Dataset, shows_growth
from models.capacity.growth.regressions import REGRESSIONS, loocv_rmse
from models.capacity.observation import Budget
from models.errors import InvalidInput, SluiceError
from models.schema import Format, NonNegative, Positive, PositiveInt
from models.wording import amount

KEPT_BACK: Final = 3
"""Observations to keep back: as few as a review can judge by (`pipelines.registry.review.rule.FEWEST_UNSEEN`)."""
MOST_GROWTH: Final = 0.10
"""The search stops when the error grows by more than this share between two measurements."""
_EXACT: Final = 1e-9
"""Errors below this share of the MST are rounding: a perfect fit does not get worse."""


class SearchSpace(Format):
    """The budgets that may be measured."""

    min_slots: PositiveInt = Field(description="Fewest task slots: one for each operator but the sources.")
    max_slots: PositiveInt = Field(description="Most task slots of the testbed.")
    memory_levels_mb: tuple[Positive, ...] = Field(
        min_length=1, description="TaskManager memory sizes, MiB, ascending."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.min_slots > self.max_slots:
            raise ValueError(
                f"min_slots <= max_slots must hold, but got (min_slots={self.min_slots}, max_slots={self.max_slots})"
            )
        if list(self.memory_levels_mb) != sorted(set(self.memory_levels_mb)):
            raise ValueError(f"memory_levels_mb must ascend without repeats, but got {list(self.memory_levels_mb)}")
        return self

    @cached_property
    def corners(self) -> tuple[Budget, ...]:
        """Lowest and highest slots at the lowest, then at the highest memory; fewer where those coincide."""
        levels = self.memory_levels_mb
        return tuple(
            Budget(task_slots=slots, memory_mb=memory)
            for memory in dict.fromkeys((levels[0], levels[-1]))
            for slots in dict.fromkeys((self.min_slots, self.max_slots))
        )


Suggester = Literal["corner", "bayesian", "gap", "recorded"]
"""Who chose a budget: the corners of the space, Bayesian optimisation, the widest gap, or whoever made the recorded
measurements."""


class ExplorationStep(Format):
    """One measured budget, and how good the models were after it."""

    budget: Budget
    mst: Positive = Field(description="Measured MST, records/s.")
    loocv: dict[str, NonNegative] = Field(
        description="LOOCV RMSE of each candidate with all measurements so far, records/s; empty after a single one."
    )
    suggested_by: Suggester

    @property
    def error(self) -> float | None:
        """The cost: the lowest LOOCV error (Eq. 9), records/s; None after a single measurement."""
        return min(self.loocv.values()) if self.loocv else None


class Exploration:
    """State machine: `next()` says which budget to measure, `observe()` takes its MST.

    Everything follows from the space, the seed and the observations: a new exploration that is fed with the same ones
    resumes from the last of them.
    """

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
        self.space = space
        self._min, self._max = min_measurements, max_measurements
        self._steps: list[ExplorationStep] = []
        self._to_keep_back = kept_back
        self._kept_back: list[Budget] = []
        self._suggester = _Suggester(space, seed)
        self._reason: str | None = None
        self._stop: str | None = None
        """Why Bayesian optimisation ended; gaps may be measured after it."""
        self._next_by: Suggester = "corner"
        self._pending: Budget | None = space.corners[0]

    def next(self) -> Budget | None:
        """The budget to measure now; None when the search has ended. The same until `observe` was called."""
        return self._pending

    @property
    def keeps_back(self) -> bool:
        """Whether the observation of `next()` is kept back for the review; the search itself has ended then."""
        return self._reason is not None and self._pending is not None

    def observe(self, mst: float) -> None:
        """Take the MST measured with the budget of `next()`, records/s."""
        if self._pending is None:
            raise SluiceError("observe() must follow a next() that returned a budget, but the exploration has ended")
        if not (math.isfinite(mst) and mst > 0):
            raise InvalidInput(f"an MST must be finite and above 0, but got {mst}")
        if self.keeps_back:
            self._kept_back.append(self._pending)
        else:
            self._record(self._pending, mst)
        self._pending = self._next_kept_back() if self._reason is not None else self._decide()

    @property
    def steps(self) -> tuple[ExplorationStep, ...]:
        """What was measured, in order."""
        return tuple(self._steps)

    @property
    def reason(self) -> str:
        """Why the search ended, in words; while it runs, that it does."""
        return self._reason or f"still exploring, {len(self._steps)} measured"

    def _record(self, budget: Budget, mst: float) -> None:
        self._steps.append(_step([*self._measured, (budget, mst)], self._next_by))

    @property
    def _measured(self) -> list[tuple[Budget, float]]:
        return [(s.budget, s.mst) for s in self._steps]

    def _decide(self) -> Budget | None:
        """What to measure after the last step, or why not to go on."""
        corners = self.space.corners
        done = len(self._steps) - len(corners)
        if done < 0:
            return corners[len(self._steps)]
        self._suggester.tell([s.budget for s in self._steps[-1:]] if done else list(corners), self._steps[-1].error)
        self._stop = self._stop or self._stop_after(done)
        if self._stop is None:
            self._next_by = "bayesian"
            return self._suggester.ask()
        gap = None if done >= self._max or shows_growth(_dataset(self._measured)) else self._widest_gap()
        self._next_by = "gap"
        if gap is None:
            self._reason = self._stop
            return self._next_kept_back()
        return gap

    def _next_kept_back(self) -> Budget | None:
        if len(self._kept_back) == self._to_keep_back:
            return None
        return self._widest_gap() or self.space.corners[-1]

    def _widest_gap(self) -> Budget | None:
        """The middle of the largest ratio of neighbouring numbers of slots, with most and least memory by turns.

        None where no number of slots lies between any two that were measured.
        """
        slots = sorted({b.task_slots for b in (*(s.budget for s in self._steps), *self._kept_back)})
        gaps = [(high / low, low, high) for low, high in itertools.pairwise(slots) if high - low > 1]
        if not gaps:
            return None
        _, low, high = max(gaps)
        middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        turn = sum(s.suggested_by == "gap" for s in self._steps) + len(self._kept_back)
        return Budget(task_slots=middle, memory_mb=self.space.memory_levels_mb[-1 if turn % 2 == 0 else 0])

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


def recorded_steps(measured: Sequence[tuple[Budget, float]]) -> tuple[ExplorationStep, ...]:
    """The history of an exploration that was made elsewhere.

    Args:
        measured: budgets and their MSTs, records/s, in the order they were measured.
    """
    return tuple(_step(measured[: i + 1], "recorded") for i in range(len(measured)))


def _step(measured: Sequence[tuple[Budget, float]], by: Suggester) -> ExplorationStep:
    """The last measurement, and the errors of the candidates with it and all before it."""
    budget, mst = measured[-1]
    data = _dataset(measured)
    loocv = {name: loocv_rmse(name, data) for name in REGRESSIONS} if len(data) > 1 else {}
    return ExplorationStep(budget=budget, mst=mst, loocv=loocv, suggested_by=by)


def _dataset(measured: Sequence[tuple[Budget, float]]) -> Dataset:
    return Dataset(
        np.array([b.memory_mb for b, _ in measured]),
        np.array([b.task_slots for b, _ in measured]),
        np.array([m for _, m in measured]),
    )


class _Suggester:
    """Bayesian optimisation over slots and memory levels; a dimension with a single level takes no part."""

    def __init__(self, space: SearchSpace, seed: int) -> None:
        # Imported here because scikit-optimize takes seconds to import, and reading a finished exploration does without.
        from skopt import Optimizer
        from skopt.space import Integer

        self._space = space
        self._vary_slots = space.min_slots < space.max_slots
        self._vary_memory = len(space.memory_levels_mb) > 1
        dimensions = []
        if self._vary_slots:
            dimensions.append(Integer(space.min_slots, space.max_slots))
        if self._vary_memory:
            dimensions.append(Integer(0, len(space.memory_levels_mb) - 1))
        self._optimizer: Any = None
        if dimensions:
            self._optimizer = Optimizer(
                dimensions,
                base_estimator="GP",
                acq_func="EI",
                n_initial_points=len(space.corners),
                avoid_duplicates=False,  # else a repeat, which is wanted, becomes a random point
                random_state=seed,
            )

    def tell(self, budgets: list[Budget], error: float | None) -> None:
        """The error that the models had once these budgets were measured."""
        if self._optimizer is not None:
            points = [self._point(budget) for budget in budgets]
            # The matrices have a few rows: more threads only wait for each other, and round differently.
            with threadpool_limits(limits=1, user_api="blas"):
                self._optimizer.tell(points, [error] * len(points))

    def ask(self) -> Budget:
        """The next budget; where nothing varies, the only one there is."""
        if self._optimizer is None:
            return self._space.corners[0]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The objective has been evaluated at point")
            coordinates = [int(c) for c in self._optimizer.ask()]
        slots = coordinates.pop(0) if self._vary_slots else self._space.min_slots
        level = coordinates.pop(0) if self._vary_memory else 0
        return Budget(task_slots=slots, memory_mb=self._space.memory_levels_mb[level])

    def _point(self, budget: Budget) -> list[int]:
        level = self._space.memory_levels_mb.index(budget.memory_mb)
        return [budget.task_slots] * self._vary_slots + [level] * self._vary_memory
