"""Workloads: the five patterns of the evaluation of autoscalers (section 5.3), and rates from a file.

Notation: i minute, v_i rate of minute i in records/s, P nominal peak rate, U(a, b) uniform noise. In units of P the
patterns are those of the evaluation's public generator, in each minute:

    increasing   v_i = max(0, v_(i-1) + U(-P/30, P/22)), from 0
    decreasing   v_i = max(0, v_(i-1) + U(-P/21, P/28)), from P + 2000, where 2000 belongs to P = 2 500 000
    cosine       v_i = max(0, 6/11 P + 5/11 P cos(2 pi i / 60) + U(-P/88, P/88))
    random       v_i = v_(i-1) + U(-P/5, P/5), clipped to [0, P], from v_0 = P/2
    steps        0 for 10 minutes, then P/2 for 40, P for 40, and P/2 for the rest

P is nominal: the random walks may exceed it, and the cosine by its noise. U comes from the generator specified for
`java.util.Random`, and numbers are drawn and rounded down as in the public generator, so that P, seed and length give its
rates exactly: P = 2 500 000 records/s and seed 1066 for increasing, decreasing and (with 7 added to the seed, as published)
random; P = 22 000 for cosine.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Final, Self

from pydantic import Field, model_validator

from models.errors import InvalidInput
from models.metrics import SAMPLE_INTERVAL_S
from models.schema import Format, NonNegative, Positive
from pipelines.arena.request import SEED
from pipelines.inputs.parsing.files import read_csv

MINUTES: Final = 140
"""Length of the published workloads."""
MINUTE_S: Final = 60.0
_RANDOM_SEED_OFFSET: Final = 7
_MOST_STEPS: Final = 1_000_000
"""Most rates in a file; two years of minutes."""


class Pattern(StrEnum):
    """The course of the rate over time."""

    INCREASING = "increasing"
    DECREASING = "decreasing"
    COSINE = "cosine"
    RANDOM = "random"
    STEPS = "steps"


class Workload(Format):
    """Rates at the sources together, each for the same duration."""

    name: str = Field(min_length=1, description="A pattern, or the name of the file.")
    step_s: Positive = Field(MINUTE_S, description="How long a rate lasts: a multiple of the reporting interval.")
    rates: tuple[NonNegative, ...] = Field(min_length=1, description="Records/s, in order.")
    changes_s: tuple[NonNegative, ...] = Field(
        (), description="Times of lasting changes of the rate, s; convergence is measured from each of them."
    )

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not math.isclose(self.step_s / SAMPLE_INTERVAL_S, round(self.step_s / SAMPLE_INTERVAL_S), abs_tol=1e-9):
            raise ValueError(
                f"step_s must be a multiple of the reporting interval of {SAMPLE_INTERVAL_S:g} s, but got {self.step_s:g}"
            )
        if any(not start < end for start, end in pairwise((*self.changes_s, self.seconds))):
            raise ValueError(f"changes_s must be ascending and before the end at {self.seconds:g} s")
        return self

    @property
    def seconds(self) -> float:
        """Its duration."""
        return self.step_s * len(self.rates)

    @property
    def peak_rate(self) -> float:
        """Its highest rate, records/s."""
        return max(self.rates)

    def first(self, minutes: int) -> Self:
        """Its first `minutes` minutes, or all of it if it is shorter."""
        steps = max(1, math.floor(minutes * MINUTE_S / self.step_s + 1e-9))
        rates = self.rates[:steps]
        end_s = self.step_s * len(rates)
        return self.model_copy(
            update={"rates": rates, "changes_s": tuple(at for at in self.changes_s if at < end_s - 1e-9)}
        )

    def scaled_to(self, peak_rate: float) -> Self:
        """The same with another highest rate.

        Raises:
            InvalidInput: all its rates are 0.
        """
        if self.peak_rate == 0:
            raise InvalidInput(f"workload {self.name!r} cannot be scaled to a peak rate: all its rates are 0")
        factor = peak_rate / self.peak_rate
        return self.model_copy(update={"rates": tuple(rate * factor for rate in self.rates)})


def pattern(kind: Pattern, peak_rate: float, seed: int = SEED, minutes: int = MINUTES) -> Workload:
    """A pattern with nominal peak rate P (see above), one rate a minute.

    Raises:
        InvalidInput: the peak rate is not above 0, or the length is below one minute.
    """
    if not (peak_rate > 0 and math.isfinite(peak_rate)):
        raise InvalidInput(f"the peak rate must be above 0 and finite, but got {peak_rate:g} records/s")
    if minutes < 1:
        raise InvalidInput(f"a workload must last 1 minute or more, but got {minutes}")
    rates = _RATES[kind](peak_rate, seed, minutes)
    changes = [start * MINUTE_S for start, _ in _ROUNDS if start < minutes] if kind is Pattern.STEPS else []
    return Workload(name=kind.value, rates=tuple(rates), changes_s=tuple(changes[1:]))


def _increasing(peak: float, seed: int, minutes: int) -> list[float]:
    return _walk(0.0, -peak / 30, peak / 22, math.inf, _uniform(seed), minutes)


def _decreasing(peak: float, seed: int, minutes: int) -> list[float]:
    return _walk(peak * (1 + 2000 / 2_500_000), -peak / 21, peak / 28, math.inf, _uniform(seed), minutes)


def _random(peak: float, seed: int, minutes: int) -> list[float]:
    start = peak / 2
    walk = _walk(start, -peak / 5, peak / 5, peak, _uniform(seed + _RANDOM_SEED_OFFSET), minutes - 1)
    return [float(math.trunc(start)), *walk]


def _walk(value: float, down: float, up: float, most: float, noise: Iterator[float], steps: int) -> list[float]:
    """Each value is the one before plus U(down, up), rounded down, with bounds rounded to whole records towards 0."""
    low, width, rates = math.trunc(down), math.trunc(up) - math.trunc(down), []
    for _ in range(steps):
        value = float(math.trunc(min(max(value + next(noise) * width + low, 0.0), most)))
        rates.append(value)
    return rates


def _cosine(peak: float, seed: int, minutes: int) -> list[float]:
    mean, amplitude, deviation = peak * 6 / 11, peak * 5 / 11, peak / 88
    noise = _uniform(seed)
    rates = []
    for i in range(minutes):
        value = mean + amplitude * math.cos(2 * math.pi / 60 * i) + next(noise) * 2 * deviation - deviation
        rates.append(float(math.trunc(max(0.0, value))))
        # The generator draws two more numbers, for spikes that these workloads do not have.
        next(noise), next(noise)
    return rates


_ROUNDS: Final = ((0, 0.0), (10, 0.5), (50, 1.0), (90, 0.5))
"""Steps: first minute of each round, and its share of the peak rate."""


def _steps(peak: float, seed: int, minutes: int) -> list[float]:
    return [peak * next(share for start, share in reversed(_ROUNDS) if start <= i) for i in range(minutes)]


_RATES: Final[dict[Pattern, Callable[[float, int, int], list[float]]]] = {
    Pattern.INCREASING: _increasing,
    Pattern.DECREASING: _decreasing,
    Pattern.COSINE: _cosine,
    Pattern.RANDOM: _random,
    Pattern.STEPS: _steps,
}


def _uniform(seed: int) -> Iterator[float]:
    """The numbers in [0, 1) that Java's `new Random(seed).nextDouble()` returns: a linear congruential generator of 48
    bits, 26 and then 27 high bits of which make one number (Java SE API, class java.util.Random)."""
    multiplier, increment, mask = 0x5DEECE66D, 0xB, (1 << 48) - 1
    state = (seed ^ multiplier) & mask
    while True:
        state = (state * multiplier + increment) & mask
        high = state >> 22
        state = (state * multiplier + increment) & mask
        yield ((high << 27) + (state >> 21)) / (1 << 53)


_TIME_COLUMNS: Final = {"minute": MINUTE_S, "time": 1.0, "time_s": 1.0}
"""Columns with the start of a rate, and their unit in seconds."""
_RATE_COLUMNS: Final = ("rate", "mean_rate")


def read_workload(path: Path, column: str | None = None) -> Workload:
    """Rates from a CSV file: a column `minute`, `time_s` or `time` (seconds), and one of rates in records/s.

    The rates are those of the given column, or else of `rate`, `mean_rate`, or the only other column.

    Raises:
        InvalidInput: a column is missing or ambiguous, a value is not a number of 0 or more, or the times do not rise
            evenly by a multiple of the reporting interval.
    """
    rows = read_csv(path)
    if len(rows) > _MOST_STEPS:
        raise InvalidInput(f"{path} must have at most {_MOST_STEPS} rows, but has {len(rows)}; is it the right file?")
    columns = list(rows[0])
    time_column = next((name for name in _TIME_COLUMNS if name in columns), None)
    if time_column is None:
        raise InvalidInput(
            f"{path} must have a column 'minute' or 'time_s' (seconds), but has {', '.join(columns)}; rename one"
        )
    rate_column = _rate_column(path, [name for name in columns if name != time_column], column)
    times = [_number(path, line, time_column, row) for line, row in enumerate(rows, start=2)]
    rates = [_number(path, line, rate_column, row) for line, row in enumerate(rows, start=2)]
    name = path.stem if column is None else f"{path.stem}-{column}"
    step_s = _step_s(path, time_column, times)
    return Workload(name=name, step_s=step_s, rates=tuple(rates))


def _rate_column(path: Path, columns: Sequence[str], asked: str | None) -> str:
    if asked is not None:
        if asked in columns:
            return asked
        raise InvalidInput(f"{path} has no column {asked!r} of rates; it has {', '.join(columns) or 'none'}")
    known = [name for name in _RATE_COLUMNS if name in columns] or list(columns)
    if len(known) == 1:
        return known[0]
    raise InvalidInput(
        f"{path} must say which column holds the rates, but has {', '.join(columns) or 'none'}; name one 'rate', or ask "
        f"for {path}:COLUMN"
    )


def _number(path: Path, line: int, column: str, row: dict[str, str]) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not (value >= 0 and math.isfinite(value)):
        raise InvalidInput(f"{path}, line {line}: {column} must be a number of 0 or more, but got {row[column]!r}")
    return value


def _step_s(path: Path, column: str, times: Sequence[float]) -> float:
    """How long each rate lasts; a minute if there is only one."""
    unit_s = _TIME_COLUMNS[column]
    if len(times) == 1:
        return MINUTE_S
    step_s = (times[1] - times[0]) * unit_s
    intervals = step_s / SAMPLE_INTERVAL_S
    if not (intervals >= 1 - 1e-9 and math.isclose(intervals, round(intervals), abs_tol=1e-6)):
        raise InvalidInput(
            f"{path}: {column} must rise by a multiple of the reporting interval of {SAMPLE_INTERVAL_S:g} s, but rises "
            f"by {step_s:g} s between its first two rows"
        )
    for line, (before, after) in enumerate(pairwise(times), start=3):
        if not math.isclose((after - before) * unit_s, step_s, abs_tol=1e-3):
            raise InvalidInput(
                f"{path}, line {line}: {column} must rise by {step_s / unit_s:g} from row to row, but goes from "
                f"{before:g} to {after:g}; fill in or remove rows"
            )
    return round(intervals) * SAMPLE_INTERVAL_S
