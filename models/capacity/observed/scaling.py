"""From what was seen of a running job to the tasks that another rate needs, and to a capacity model.

Notation as in `models/capacity/diagnosis/facts.py`, seen at the source rate lambda_0: p_i, h_i, m_i, and the work w_i of all
tasks together. At another rate lambda and with p tasks the fullest task of vertex i is busy for

    m_i(lambda, p) = lambda / lambda_0  w_i (h_i + (1 - h_i) / p)                                  (1)

    p_i(lambda)    the fewest tasks with m_i(lambda, p) <= 1                                       (2)

so that a job with p_i(lambda) tasks takes lambda, if a record costs what it did. The MST that was seen, or computed, says
by how much that is off at lambda_0; beyond it the growth is multiplied by a drift around 1, as that of any growth law.

The tasks of vertex i are full at

    R_i(p) = lambda_0 / (w_i (h_i + (1 - h_i) / p))                                                (3)

and a number of tasks takes the most when each goes to the vertex with the lowest R_i: a step function, since a task that
another vertex needs as well brings nothing alone.
"""

import heapq
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.capacity.diagnosis.facts import BoundFacts, OperatorFacts
from models.capacity.diagnosis.rates import saturating_rate
from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.curves import DRAWS
from models.capacity.growth.posterior import TYPICAL_NOISE
from models.capacity.growth.twin import TwinCurve, TwinCurves
from models.errors import Infeasible
from models.plan.parts import Interval
from models.wording import amount

MOST_RATE: Final = 1e12
"""Records/s that nothing takes: a vertex that does nothing is never full."""
OBSERVED_DRIFT: Final = 0.14
"""Scale of the drift: that of growth laws, since one size was seen."""
MOST_GROWTH: Final = 256.0
"""Rates up to so many times the one that fills the job are looked at."""
_EACH: Final = 64
"""Up to so many tasks each number of them is looked at, beyond it one of each 64th part."""
_ROUNDING: Final = 1e-6
"""Share of a task, or of a rate, that is not worth another task."""
UNKNOWN_SPREAD: Final = 1.0
"""Standard deviation of log MST where its low end is unknown."""
Z_95: Final = 1.96
GOLDEN: Final = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class ObservedScaling:
    """How the vertices of an observed job scale."""

    facts: BoundFacts
    """At the rate that was seen."""
    most_tasks: Mapping[str, int]
    """Of each vertex, by name; those that are missing have no limit."""

    def tasks(self, rate: float) -> dict[str, int]:
        """The fewest tasks of each vertex, Eq. 2.

        Raises:
            Infeasible: no number of tasks takes the rate: one gets too large a share, or a vertex may have no more.
        """
        return {o.name: self._tasks(o, rate) for o in self.facts.operators}

    def _tasks(self, operator: OperatorFacts, rate: float) -> int:
        work, hot = self._work(operator) * rate / self.facts.rate, operator.hot_share
        if work * hot >= 1:
            raise Infeasible(
                f"one task of {operator.name!r} gets {hot:.0%} of the records beside its even share, and is full at "
                f"{amount(self.facts.rate / (self._work(operator) * hot))} records/s however many tasks there are; "
                f"{amount(rate)} are asked for; spread its hot key, such as by aggregating in two phases"
            )
        needed = max(1, math.ceil(work * (1 - hot) / (1 - work * hot) * (1 - _ROUNDING)))
        most = self.most_tasks.get(operator.name)
        if most is not None and needed > most:
            raise Infeasible(
                f"{operator.name!r} needs {needed} tasks for {amount(rate)} records/s, but may have {most}; raise the job's "
                "maximum parallelism or the topic's partitions"
            )
        return needed

    def _work(self, operator: OperatorFacts) -> float:
        """w_i; of a vertex whose busyness is unknown, as if its tasks were full: it then needs more at any other rate."""
        return operator.parallelism if operator.work is None else operator.work

    def rate_per_task(self, name: str, tasks: int, records_in: float) -> float:
        """Records/s of useful time that each of so many tasks takes in the mean when the fullest is busy all the time.

        Args:
            records_in: into all of its tasks at the rate that was seen.
        """
        operator = self.facts.operator(name)
        return records_in / self.facts.rate * min(self.full_at(operator, tasks), MOST_RATE) / tasks

    def rate_of(self, slots: int, sources: frozenset[str]) -> float:
        """The rate that so many tasks beside the sources' take, each given to the vertex that is full first."""
        takes = 0.0
        for size, rate in self._steps(sources):
            takes = rate
            if size >= slots:
                break
        return takes

    def most_slots(self, sources: frozenset[str]) -> int:
        """The most tasks beside the sources' that are looked at: more take no more."""
        return max(size for size, _ in self._steps(sources))

    def model(self, mst: Interval, memory_mb: float, sources: frozenset[str]) -> CapacityModel:
        """The capacity model, with what is unknown of the MST that it begins from.

        Args:
            mst: of the job as it was seen.
            memory_mb: of one TaskManager, MiB.
        """
        fills = saturating_rate(self.facts) or mst.value
        curve = self._curve(memory_mb, sources)
        seen = self._slots_for(fills, curve)
        down = math.log(mst.value / mst.low) / Z_95 if mst.low > 0 else UNKNOWN_SPREAD
        up = math.log(mst.high / mst.value) / Z_95 if mst.low > 0 else UNKNOWN_SPREAD
        share = (np.arange(DRAWS) + 0.5) / DRAWS
        away = _normal_quantile(share)
        # Independent of the levels: the multiples of the golden ratio fill the unit interval evenly in any order.
        shuffled = (0.5 + np.arange(DRAWS) * GOLDEN) % 1.0
        return CapacityModel.of(
            TwinCurves(
                curve=curve,
                fewest_slots=seen,
                most_slots=seen,
                memory_mb=memory_mb,
                level=_rounded(math.log(mst.value / fills) + np.where(away < 0, down, up) * away),
                memory_effect=(0.0,) * DRAWS,
                noise=(TYPICAL_NOISE,) * DRAWS,
                drift=_rounded(1 + OBSERVED_DRIFT * _normal_quantile(shuffled)),
                shape=((0.0,),) * DRAWS,
            )
        )

    @staticmethod
    def _slots_for(rate: float, curve: TwinCurve) -> int:
        """The fewest that take the rate: those that a job with the same tightest vertex needs, were the others no wider."""
        return int(
            next(
                (n for n, takes in zip(curve.task_slots, curve.mst[0], strict=True) if takes >= rate * (1 - _ROUNDING)),
                curve.task_slots[-1],
            )
        )

    def _curve(self, memory_mb: float, sources: frozenset[str]) -> TwinCurve:
        """The highest rate that each number of tasks takes, as far as vertices can have more tasks."""
        kept: dict[int, float] = {}
        due = 0.0
        for size, rate in self._steps(sources):
            last = size, rate
            if size >= due:
                kept[size], due = rate, size + max(1.0, size / _EACH)
        size, rate = last
        # More than the last take no more.
        kept |= {size: rate, size + 1: rate}
        return TwinCurve(memory_mb=(memory_mb,), task_slots=tuple(map(float, kept)), mst=(tuple(kept.values()),))

    def _steps(self, sources: frozenset[str]) -> Iterator[tuple[int, float]]:
        """Each number of tasks beside the sources', and the rate that they take, up to MOST_GROWTH or what limits allow."""
        of = {o.name: o for o in self.facts.operators}
        tasks = dict.fromkeys(of, 1)
        queue = [(self.full_at(o, 1), name) for name, o in of.items()]
        heapq.heapify(queue)
        size, most = len(of.keys() - sources), MOST_GROWTH * max(queue[0][0], self.facts.rate)
        while True:
            rate, name = queue[0]
            grows = self._may_grow(of[name], tasks[name]) and rate < most
            if not grows or name not in sources:
                yield max(size, 1), min(rate, MOST_RATE)
            if not grows:
                return
            tasks[name] += 1
            size += name not in sources
            heapq.heapreplace(queue, (self.full_at(of[name], tasks[name]), name))

    def full_at(self, operator: OperatorFacts, tasks: int) -> float:
        """The rate at which the fullest of so many tasks is busy all the time, Eq. 3."""
        hot = operator.hot_share
        filled = self._work(operator) * (hot + (1 - hot) / tasks)
        return self.facts.rate / filled if filled > 0 else math.inf

    def _may_grow(self, operator: OperatorFacts, tasks: int) -> bool:
        """Whether one more task takes more."""
        most = self.most_tasks.get(operator.name, math.inf)
        return tasks < most and self.full_at(operator, tasks + 1) > self.full_at(operator, tasks) * (1 + _ROUNDING)


def _normal_quantile(share: "np.ndarray") -> "np.ndarray":
    from scipy.special import ndtri  # Takes longer to import than most answers to compute.

    return np.asarray(ndtri(share))


def _rounded(values: "np.ndarray") -> tuple[float, ...]:
    return tuple(float(f"{v:.6g}") for v in values)
