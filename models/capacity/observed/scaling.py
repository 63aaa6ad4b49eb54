"""From what was seen of a running job to the tasks that another rate needs, and to a capacity model.

Notation as in `models/capacity/diagnosis/facts.py`, seen at the source rate lambda_0: b_i, p_i, h_i, and m_i, the busyness
that saturates first. At another rate lambda and with p tasks the fullest task of vertex i is busy for

    m_i(lambda, p) = lambda / lambda_0  b_i p_i (h_i + (1 - h_i) / p)                              (1)

    p_i(lambda)    the fewest tasks with m_i(lambda, p) <= 1                                       (2)

so that a job with p_i(lambda) tasks takes lambda, if a record costs what it did. The MST that was seen, or computed, says
by how much that is off at lambda_0; beyond it the growth is multiplied by a drift around 1, as that of any growth law.
"""

import math
from collections.abc import Mapping
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
from models.plan import Interval

OBSERVED_DRIFT: Final = 0.14
"""Scale of the drift: that of growth laws, since one size was seen."""
MOST_GROWTH: Final = 256.0
"""Rates up to so many times the one that was seen are looked at."""
_STEP: Final = 1.05
_HALVINGS: Final = 40
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
                f"{self.facts.rate / (self._work(operator) * hot):,.0f} records/s however many tasks there are; {rate:,.0f} "
                "are asked for; spread its hot key, such as by aggregating in two phases"
            )
        needed = max(1, math.ceil(work * (1 - hot) / (1 - work * hot) * (1 - _ROUNDING)))
        most = self.most_tasks.get(operator.name)
        if most is not None and needed > most:
            raise Infeasible(
                f"{operator.name!r} needs {needed} tasks for {rate:,.0f} records/s, but may have {most}; raise the job's "
                "maximum parallelism or the topic's partitions"
            )
        return needed

    def _work(self, operator: OperatorFacts) -> float:
        """b_i p_i; of a vertex whose busyness is unknown, as if its tasks were full: it then needs more at any other rate."""
        return (1.0 if operator.busyness is None else operator.busyness) * operator.parallelism

    def rate_per_task(self, name: str, tasks: int, records_in: float) -> float:
        """Records/s of useful time that each of so many tasks takes in the mean when the fullest is busy all the time.

        Args:
            records_in: into all of its tasks at the rate that was seen.
        """
        operator = self.facts.operator(name)
        hot = operator.hot_share
        filled = self._work(operator) * (hot + (1 - hot) / tasks)
        return records_in / (tasks * max(filled, 1e-9))

    def rate_of(self, slots: int, sources: frozenset[str], least: float) -> float:
        """The highest rate that takes at most so many tasks beside the sources', from the least on.

        Raises:
            Infeasible: the least takes more than there may be.
        """
        self.tasks(least)
        low, high = least, least * MOST_GROWTH
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self._fits(middle, sources, slots) else (low, middle)
        return max(low * (1 - _ROUNDING), least)

    def _fits(self, rate: float, sources: frozenset[str], slots: int) -> bool:
        try:
            return self.scaled(rate, sources) <= slots
        except Infeasible:
            return False

    def scaled(self, rate: float, sources: frozenset[str]) -> int:
        """Tasks of all vertices but the sources."""
        return sum(n for name, n in self.tasks(rate).items() if name not in sources)

    def model(self, mst: Interval, memory_mb: float, sources: frozenset[str]) -> CapacityModel:
        """The capacity model, with what is unknown of the MST that it begins from.

        Args:
            mst: of the job as it was seen.
            memory_mb: of one TaskManager, MiB.
        """
        fills = saturating_rate(self.facts) or mst.value
        curve = self._curve(memory_mb, sources)
        seen = self._slots_for(fills, curve)
        spread = math.log(mst.high / mst.low) / (2 * Z_95) if mst.low > 0 else UNKNOWN_SPREAD
        share = (np.arange(DRAWS) + 0.5) / DRAWS
        # Independent of the levels: the multiples of the golden ratio fill the unit interval evenly in any order.
        shuffled = (0.5 + np.arange(DRAWS) * GOLDEN) % 1.0
        return CapacityModel.of(
            TwinCurves(
                curve=curve,
                fewest_slots=seen,
                most_slots=seen,
                memory_mb=memory_mb,
                level=_rounded(math.log(mst.value / fills) + spread * _normal_quantile(share)),
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
                (n for n, takes in zip(curve.task_slots, curve.mst[0], strict=True) if takes >= rate),
                curve.task_slots[-1],
            )
        )

    def _curve(self, memory_mb: float, sources: frozenset[str]) -> TwinCurve:
        """The highest rate that each number of tasks takes, as far as vertices can have more tasks."""
        found: dict[int, float] = {}
        steps = math.ceil(math.log(MOST_GROWTH, _STEP))
        for rate in (self.facts.rate * _STEP**step for step in range(-steps, steps + 1)):
            try:
                found[self.scaled(rate, sources)] = rate
            except Infeasible:
                break
        sizes = sorted(found)
        if len(sizes) < 2:
            last = sizes[-1] if sizes else sum(o.parallelism for o in self.facts.operators if o.name not in sources)
            found.setdefault(last, self.facts.rate)
            found[last + 1] = found[last]
            sizes = sorted(found)
        return TwinCurve(
            memory_mb=(memory_mb,),
            task_slots=tuple(float(n) for n in sizes),
            mst=(tuple(found[n] for n in sizes),),
        )


def _normal_quantile(share: "np.ndarray") -> "np.ndarray":
    from scipy.special import ndtri  # Takes longer to import than most answers to compute.

    return np.asarray(ndtri(share))


def _rounded(values: "np.ndarray") -> tuple[float, ...]:
    return tuple(float(f"{v:.6g}") for v in values)
