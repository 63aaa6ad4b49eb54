"""The exploration that asks the question of a plan: how many slots does the target rate need?

The corners of the search space come first, as in StreamBed's, then budgets between them until no gap is left in which the
MST may grow more than fourfold. From then on the next budget is the one whose measurement is expected to narrow the
interval of the slots most, per minute of the testbed (`narrowing`, `suggesting`). It ends

* when the interval is narrow enough, and no gap is left: half of it is at most `precision` of the number of slots;
* when the best budget of the testbed is not expected to narrow it by 2 %, not even measured 4 times, and at least 3
  measurements were made after the corners, so that no single odd one decides;
* at its limit of measurements.

Where the observations do not determine a model yet (fewer than 3, or an MST that falls with the slots), the widest gap is
measured, or the last corner again, up to 3 times.

The gaps are filled since the expected gain takes one of the laws to be true: by itself it repeats the corners, which leaves
the growth between them to whatever the laws, or the straight line between two sizes of a twin, make of it. No law grows
faster than the tasks t = n - n1 + 1 of the operator that slots are added to, with n1 the fewest slots, so that a gap is as
wide as the ratio of its t.
"""

import itertools
import math
from typing import Final

from models.capacity.exploration.exploration import Exploration
from models.capacity.exploration.narrowing import Narrowing
from models.capacity.exploration.question import (
    LEAST_GAIN,
    HelpfulMeasurement,
    SizingAnswer,
    SizingQuestion,
    answer,
    most_helpful,
)
from models.capacity.exploration.space import SearchSpace, dataset_of, step_of
from models.capacity.exploration.suggesting import MeasuringTime, Suggestion, suggest
from models.capacity.observation import Budget
from models.errors import InvalidInput, SluiceError

FEWEST_MEASUREMENTS: Final = 3
"""After the corners, before it ends because none is expected to help, or because there is no model."""
REPEATS: Final = 4
"""Measurements of one budget that halve the noise of their mean."""
WIDEST_GAP: Final = 4.0
"""Most ratio of t between neighbouring numbers of slots that were measured: three measurements fill 9 to 48 slots."""


class TargetedExploration(Exploration):
    """The budget that narrows the answer most per minute."""

    def __init__(
        self,
        space: SearchSpace,
        seed: int,
        question: SizingQuestion,
        time: MeasuringTime,
        max_measurements: int = 20,
        kept_back: int = 0,
    ) -> None:
        """Begin a search.

        Args:
            seed: of the optimiser of the acquisition, 0 to 2^32 - 1.
            time: what a measurement takes.
            max_measurements: most after the corners.
            kept_back: budgets to measure for the review after that.
        """
        if max_measurements < 1:
            raise InvalidInput(f"max_measurements must be at least 1, but got {max_measurements}")
        super().__init__(space, kept_back)
        self._seed, self._question, self._time, self._max = seed, question, time, max_measurements
        self._answer: SizingAnswer | None = None
        self._refusal = ""
        """Why there is no answer."""

    @property
    def answer(self) -> SizingAnswer | None:
        """The slots by all observations so far; None while they do not determine a model."""
        return self._answer

    @property
    def would_help(self) -> HelpfulMeasurement | None:
        """The measurement that would narrow the answer most, on a larger testbed if need be; None where it is narrow enough,
        or where none would help."""
        if self._answer is None or self._answer.precise:
            return None
        return most_helpful(self._answer, max(s.budget.task_slots for s in self._steps))

    def _record(self, budget: Budget, mst: float) -> None:
        measured = [*self._measured, (budget, mst)]
        try:
            self._answer = answer(self._question, dataset_of(measured))
        except SluiceError as refusal:
            self._answer, self._refusal = None, str(refusal)
        slots = None if self._answer is None else self._answer.slots
        self._steps.append(step_of(measured, self._next_by, slots))

    def _decide(self, done: int) -> Budget | None:
        found, gap = self._answer, self._gap()
        if found is not None and found.precise and (gap is None or done >= self._max):
            self._reason = f"{found.text} for {self._asked}: within {self._question.precision:.0%}"
        elif done >= self._max:
            self._reason = f"the limit of {self._max} measurements after the corners was reached; {self._state}"
        elif gap is not None:
            self._next_by = "gap"
            return gap
        elif found is None:
            return self._without_model(done)
        else:
            return self._narrowing(found, done)
        return None

    def _gap(self) -> Budget | None:
        """The middle of the widest gap in t, with most and least memory by turns; None where all are narrow enough."""
        below = self.space.min_slots - 1
        tasks = sorted({s.budget.task_slots - below for s in self._steps})
        gaps = [(high / low, low, high) for low, high in itertools.pairwise(tasks)]
        ratio, low, high = max(gaps, default=(1.0, 1, 1))
        if ratio <= WIDEST_GAP:
            return None
        levels, turn = self.space.memory_levels_mb, sum(s.suggested_by == "gap" for s in self._steps)
        return Budget(task_slots=below + round(math.sqrt(low * high)), memory_mb=levels[-1 if turn % 2 == 0 else 0])

    def _without_model(self, done: int) -> Budget | None:
        if done >= FEWEST_MEASUREMENTS:
            self._reason = self._refusal
            return None
        self._next_by = "gap"
        return self._widest_gap() or self.space.corners[-1]

    def _narrowing(self, found: SizingAnswer, done: int) -> Budget | None:
        best = suggest(found.narrowing, self.space, self._time, [s.budget for s in self._steps], self._seed)
        if done >= FEWEST_MEASUREMENTS and not self._helps(found.narrowing, best):
            self._reason = (
                f"no measurement of up to {self.space.max_slots} slots is expected to narrow the interval by "
                f"{LEAST_GAIN:.0%}; {self._state}"
            )
            return None
        self._next_by = "target"
        return best.budget

    def _helps(self, narrowing: Narrowing, best: Suggestion) -> bool:
        """Whether the best budget is worth a measurement: by itself, or as the first of several. Never where the interval
        has no width, since not even 1,000,000 slots may do."""
        enough = (1 - LEAST_GAIN) * narrowing.log_width
        return best.log_width < enough or narrowing.expected(best.budget, REPEATS) < enough

    @property
    def _asked(self) -> str:
        return self._question.margin.of(self._question.rate)

    @property
    def _state(self) -> str:
        """The answer when it is not precise, and what would help."""
        if self._answer is None:
            return self._refusal
        helpful = self.would_help
        advice = "no single measurement is expected to narrow it much" if helpful is None else helpful.text
        return f"{self._answer.text} for {self._asked}; {advice}"
