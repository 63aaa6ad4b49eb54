"""What every exploration does: the corners first, then what it decides, then observations to keep back.

After its end an exploration measures budgets to keep back: no model is fitted to them, so that the review can judge
models by observations they have not seen. They lie in the widest gaps, or repeat the last corner if there is none.
"""

import itertools
import math
from abc import ABC, abstractmethod
from typing import Final

from models.capacity.exploration.space import ExplorationStep, SearchSpace, Suggester, step_of
from models.capacity.observation import Budget
from models.errors import InvalidInput, SluiceError

KEPT_BACK: Final = 3
"""Observations to keep back: as few as a review can judge by (`pipelines.registry.review.rule.FEWEST_UNSEEN`)."""


class Exploration(ABC):
    """State machine: `next()` says which budget to measure, `observe()` takes its MST.

    Everything follows from the space, the seed and the observations: a new exploration that is fed with the same ones
    resumes from the last of them.
    """

    def __init__(self, space: SearchSpace, kept_back: int) -> None:
        """Begin a search.

        Args:
            kept_back: budgets to measure for the review after its end.
        """
        self.space = space
        self._steps: list[ExplorationStep] = []
        self._to_keep_back = kept_back
        self._kept_back: list[Budget] = []
        self._reason: str | None = None
        """Why the search ended."""
        self._next_by: Suggester = "corner"
        self._pending: Budget | None = space.corners[0]

    def next(self) -> Budget | None:
        """The budget to measure now; None when the search has ended. The same until `observe` was called."""
        return self._pending

    @property
    def keeps_back(self) -> bool:
        """Whether the observation of `next()` is kept back for the review; the search itself has ended then."""
        return self._reason is not None and self._pending is not None

    def observe(self, mst: float, instead: Budget | None = None) -> None:
        """Take a measured MST, records/s.

        Args:
            instead: the budget it was measured with, where that is not the one of `next()`.
        """
        if self._pending is None:
            raise SluiceError("observe() must follow a next() that returned a budget, but the exploration has ended")
        if not (math.isfinite(mst) and mst > 0):
            raise InvalidInput(f"an MST must be finite and above 0, but got {mst}")
        if instead is not None and instead not in self.space:
            raise InvalidInput(f"a budget must lie in the search space, but got {instead}")
        budget = instead or self._pending
        if self.keeps_back:
            self._kept_back.append(budget)
        else:
            self._record(budget, mst)
        self._pending = self._next_kept_back() if self._reason is not None else self._next_searched()

    @property
    def steps(self) -> tuple[ExplorationStep, ...]:
        """What was measured, in order."""
        return tuple(self._steps)

    @property
    def reason(self) -> str:
        """Why the search ended, in words; while it runs, that it does."""
        return self._reason or f"still exploring, {len(self._steps)} measured"

    @abstractmethod
    def _decide(self, done: int) -> Budget | None:
        """What to measure after `done` measurements beyond the corners; None, with `_reason` set, at the end."""

    def _record(self, budget: Budget, mst: float) -> None:
        self._steps.append(step_of([*self._measured, (budget, mst)], self._next_by))

    def _next_searched(self) -> Budget | None:
        done = len(self._steps) - len(self.space.corners)
        if done < 0:
            return self.space.corners[len(self._steps)]
        return self._decide(done) or self._next_kept_back()

    @property
    def _measured(self) -> list[tuple[Budget, float]]:
        return [(s.budget, s.mst) for s in self._steps]

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
