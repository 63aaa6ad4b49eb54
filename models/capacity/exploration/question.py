"""The question that a plan asks, and its answer from the observations so far."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from pydantic import Field

from models.capacity.exploration.narrowing import Narrowing
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.twin import TwinCurve
from models.capacity.observation import Budget
from models.capacity.selection import Stack, stack
from models.capacity.sizing import Margin, SlotsInterval
from models.capacity.target import choose_budget
from models.errors import Infeasible
from models.schema import Format, Positive

LEAST_GAIN: Final = 0.02
"""Share of the interval's width that a measurement must be expected to save; less is not worth a measurement."""
_MULTIPLES: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Of the most slots measured: those that advice looks at."""
_HALF: Final = 0.55
"""Ratio of widths from which on an interval is called halved."""


@dataclass(frozen=True)
class SizingQuestion:
    """How many slots does this rate need?"""

    rate: float
    """Target, records/s at the sources together."""
    margin: Margin
    memory_levels_mb: tuple[float, ...]
    """TaskManager memory sizes that may be planned with, MiB."""
    fewest_slots: int
    """One for each operator but the sources."""
    precision: float
    """Half of the interval of the slots, over their number, that is narrow enough."""
    twin: TwinCurve | None = None
    """What a twin of the job predicts, if there is one."""


class HelpfulMeasurement(Format):
    """The measurement that would help most, and what it is expected to do; the testbed may be too small for it."""

    budget: Budget
    ratio_now: Positive = Field(description="Highest over lowest number of slots of the interval.")
    ratio_after: Positive = Field(description="Expected of the same (geometric mean) after the measurement.")
    open_ended: bool = Field(
        description="Whether no number of slots is sure enough now; the ratios then count 1,000,000 slots as the upper end."
    )

    @property
    def text(self) -> str:
        share = math.log(self.ratio_after) / math.log(self.ratio_now)
        effect = "halve" if share <= _HALF else "narrow"
        ends = (
            "which has no upper end yet"
            if self.open_ended
            else f"from a factor of {_factor(self.ratio_now)} between its ends to one of {_factor(self.ratio_after)}"
        )
        return (
            f"measuring {self.budget.task_slots:,} slots with {self.budget.memory_mb:,.0f} MiB would help most: expected to "
            f"{effect} the interval, {ends}"
        )


@dataclass(frozen=True)
class SizingAnswer:
    """The slots by all observations, and what would narrow their interval."""

    question: SizingQuestion
    memory_mb: float
    """That the slots are meant with."""
    slots: SlotsInterval | None
    """None where no number of slots is sure enough on this evidence."""
    stack: Stack

    @cached_property
    def narrowing(self) -> Narrowing:
        question = self.question
        return Narrowing(self.stack, self.memory_mb, question.margin.factor * question.rate, question.fewest_slots)

    @property
    def precise(self) -> bool:
        """Whether the interval is narrow enough."""
        found = self.slots
        return (
            found is not None
            and found.high is not None
            and (found.high - found.low) / 2 <= self.question.precision * found.value
        )

    @property
    def text(self) -> str:
        """Such as "1,205 slots (934 to 1,630)"."""
        return "no number of slots is sure enough yet" if self.slots is None else self.slots.text


def answer(question: SizingQuestion, data: Dataset) -> SizingAnswer:
    """Fit all laws to the observations, and size the job.

    Raises:
        InvalidInput: too few observations, or all with the same number of slots.
        Infeasible: the MST falls as slots are added.
    """
    fitted = stack(data, question.twin)
    levels = [m for m in question.memory_levels_mb if m in data.memory_mb] or question.memory_levels_mb
    try:
        choice = choose_budget(fitted.model(), data, levels, question.rate, question.margin, question.fewest_slots)
    except Infeasible:
        return SizingAnswer(question, levels[-1], None, fitted)
    return SizingAnswer(question, choice.budget.memory_mb, choice.slots, fitted)


def most_helpful(found: SizingAnswer, most_slots: int) -> HelpfulMeasurement | None:
    """The fewest slots whose measurement is expected to halve the interval, else those that narrow it most.

    None where none is expected to narrow it much, or where it has no width: not even 1,000,000 slots may do.

    Args:
        most_slots: the most that were measured; up to 8 times as many are looked at, but no more than the answer.
    """
    now = found.narrowing.log_width
    most = max(most_slots, math.inf if found.slots is None else found.slots.value)
    slots = [max(found.question.fewest_slots, round(m * most_slots)) for m in _MULTIPLES]
    budgets = [Budget(task_slots=n, memory_mb=found.memory_mb) for n in slots if n <= most]
    expected = {budget: found.narrowing.expected(budget) for budget in budgets}
    halving = [budget for budget, width in expected.items() if width <= now / 2]
    best = halving[0] if halving else min(expected, key=expected.__getitem__)
    if expected[best] >= (1 - LEAST_GAIN) * now:
        return None
    return HelpfulMeasurement(
        budget=best,
        ratio_now=math.exp(now),
        ratio_after=math.exp(expected[best]),
        open_ended=found.slots is None or found.slots.high is None,
    )


def would_help(question: SizingQuestion, data: Dataset) -> HelpfulMeasurement | None:
    """The measurement that would help most; None where the answer is precise, or where none would. Raises as `answer`."""
    found = answer(question, data)
    return None if found.precise else most_helpful(found, data.most_slots)


def _factor(ratio: float) -> str:
    return f"{ratio:.1f}" if ratio < 10 else f"{float(f'{ratio:.2g}'):,.0f}"
