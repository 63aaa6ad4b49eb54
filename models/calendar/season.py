"""The season of a source rate, learnt from its history: how high it is at each time of the day, or of the week.

    step      of local time, of `step_s` seconds; a season has one rate for each step of its period
    q         the quantile that is planned for; at most JUDGED, since by a higher one only what is too low would count
    loss      of a forecast f for a rate y: q (y - f) if y > f, else (1 - q)(f - y), the loss that the quantile minimises

Three seasons compete: none (one rate at all times), a day, and a week. Days are left out in turns, the first Monday with the
first Tuesday and so on, and the season learnt from the others that forecasts them with the least mean loss is used; of two
that do equally well, the one with the shorter period. A day needs two days of history, a week each weekday twice.

Steps are those of the wall clock, since people's habits follow it through the changes to and from daylight saving time.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from models.errors import InvalidInput
from models.scaling.control.limits import DAY_S

Array = NDArray[np.float64]
Steps = NDArray[np.int64]
Period = Literal["none", "day", "week"]

DAYS: Final[dict[Period, int]] = {"none": 0, "day": 1, "week": 7}
MOST_FOLDS: Final = 8
"""Of left-out days; later ones share a fold with earlier ones."""
JUDGED: Final = 0.95
WORSE: Final = 1e-9
"""Share by which a loss must be less, to count as less."""


@dataclass(frozen=True)
class Season:
    """A rate for each step of a period."""

    period: Period
    step_s: float
    rates: tuple[float, ...]
    """Records/s, from midnight; of a week, from midnight before Monday."""
    days: int = 0
    """Number of days that it was learnt from; 0 if it was stated."""

    @classmethod
    def flat(cls, rate: float, step_s: float) -> "Season":
        """The same rate at all times."""
        return cls("none", step_s, (rate,))

    def at(self, local: datetime) -> float:
        """The rate at a time of the wall clock, records/s."""
        if self.period == "none":
            return self.rates[0]
        day = local.weekday() if self.period == "week" else 0
        second = local.hour * 3600 + local.minute * 60 + local.second
        return self.rates[int((day * DAY_S + second) // self.step_s)]


@dataclass(frozen=True)
class _History:
    """One entry for each reading."""

    step: Steps
    """Step of the week."""
    fold: Steps
    """Days with the same number are left out together."""
    rates: Array


def learn(times: Sequence[datetime], rates: Sequence[float], zone: ZoneInfo, step_s: float, quantile: float) -> Season:
    """The season of a history, in any order.

    Args:
        times: instants, with an offset.
        rates: records/s.
        quantile: above 0, at most 1.

    Raises:
        InvalidInput: there is no reading, or all rates are 0.
    """
    if not times or max(rates) <= 0:
        raise InvalidInput(
            f"a season needs rates above 0, but the history has {len(times)} readings and none; record the rate for two "
            "days or more, or state a base_rate"
        )
    local = [at.astimezone(zone) for at in times]
    days = sorted({at.date() for at in local})
    of_weekday: dict[int, int] = defaultdict(int)
    fold_of = {}
    for day in days:
        fold_of[day] = of_weekday[day.weekday()]
        of_weekday[day.weekday()] += 1
    weekly = len(of_weekday) == 7 and min(of_weekday.values()) >= 2
    if not weekly:
        fold_of = {day: number for number, day in enumerate(days)}
    seconds = [at.weekday() * DAY_S + at.hour * 3600 + at.minute * 60 + at.second for at in local]
    history = _History(
        np.array([int(second // step_s) for second in seconds]),
        np.array([fold_of[at.date()] % MOST_FOLDS for at in local]),
        np.array(rates, dtype=np.float64),
    )
    possible: dict[Period, bool] = {"none": True, "day": len(days) >= 2, "week": weekly}
    periods = [period for period, enough in possible.items() if enough]
    period = _best(history, periods, step_s, quantile)
    return Season(period, step_s, tuple(map(float, _profile(history, period, step_s, quantile))), len(days))


def _best(history: _History, periods: Sequence[Period], step_s: float, quantile: float) -> Period:
    best, least = periods[0], np.inf
    for period in periods if len(periods) > 1 else ():
        loss = _loss(history, period, step_s, quantile)
        if loss < least * (1 - WORSE):
            best, least = period, loss
    return best


def _loss(history: _History, period: Period, step_s: float, quantile: float) -> float:
    """Mean loss over all readings, each forecast from the other folds."""
    losses, q = [], min(quantile, JUDGED)
    for fold in np.unique(history.fold):
        out = history.fold == fold
        known = _History(history.step[~out], history.fold[~out], history.rates[~out])
        forecast = _profile(known, period, step_s, quantile)[_in_period(history.step[out], period, step_s)]
        over = history.rates[out] - forecast
        losses.append(np.maximum(q * over, (q - 1) * over))
    return float(np.mean(np.concatenate(losses)))


def _profile(history: _History, period: Period, step_s: float, quantile: float) -> Array:
    """The quantile of each step; a step without readings has the higher of the nearest with some on its two sides."""
    steps = _in_period(history.step, period, step_s)
    count = max(1, int(DAYS[period] * DAY_S // step_s))
    seen = Counter(steps.tolist())
    order = np.argsort(steps, kind="stable")
    groups = np.split(history.rates[order], np.cumsum([seen[step] for step in sorted(seen)])[:-1])
    filled = np.array(sorted(seen))
    values = np.array([np.quantile(group, quantile, method="higher") for group in groups])
    at = np.searchsorted(filled, np.arange(count), side="right") - 1
    before = values[at]
    after = values[np.searchsorted(filled, np.arange(count), side="left") % len(filled)]
    exact = filled[at] == np.arange(count)
    return np.asarray(np.where(exact, before, np.maximum(before, after)))


def _in_period(step: Steps, period: Period, step_s: float) -> Steps:
    """Steps of the week as steps of the period."""
    return step % max(1, int(DAYS[period] * DAY_S // step_s))
