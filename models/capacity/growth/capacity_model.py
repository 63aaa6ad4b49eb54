"""The capacity model of a job: what MST a budget has, with what probability, over all growth laws.

    P(MST(M, n) >= R) = sum_k w_k P_k(MST(M, n) >= R)                                              (1)

over the laws k with weights w_k, each with its own uncertainty. All answers follow from (1): an interval of the MST is
between its quantiles, and the slots for a rate are the fewest with which the probability of sustaining it is high
enough.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Annotated, Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from models.capacity.growth.curves import DrawnCurves, LawCurves
from models.capacity.growth.dataset import Array
from models.capacity.growth.regressions import Regression
from models.capacity.growth.twin import TwinCurves
from models.plan.parts import Interval
from models.schema import Format, Positive

STACKED: Final = "stacked"
PROBABILITY: Final = 0.95
"""Of intervals."""
_STEPS: Final = 45
"""Halvings of the range in which the logarithm of a quantile is looked for."""
_LEAST_RATE: Final = 1e-6
"""Records/s; less is 0."""

Component = Annotated[LawCurves | TwinCurves | Regression, Field(discriminator="kind")]


class Weighted(Format):
    """A law and how much it counts."""

    weight: Positive
    predicts: Component


class CapacityModel(Format):
    """Fitted growth laws with their weights, which sum to 1."""

    schema_version: Literal[1] = 1
    components: tuple[Weighted, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        total = sum(c.weight for c in self.components)
        if abs(total - 1) > 1e-6:
            raise ValueError(f"the weights must sum to 1, but sum to {total}")
        return self

    @classmethod
    def of(cls, component: LawCurves | TwinCurves | Regression) -> Self:
        """A single law."""
        return cls(components=(Weighted(weight=1.0, predicts=component),))

    @property
    def alone(self) -> dict[str, "CapacityModel"]:
        """Each law as a model of its own."""
        return {c.predicts.law: CapacityModel.of(c.predicts) for c in self.components}

    @property
    def name(self) -> str:
        """The law, where it was forced; else 'stacked'."""
        return self.components[0].predicts.law if len(self.components) == 1 else STACKED

    @property
    def weights(self) -> dict[str, float]:
        return {c.predicts.law: c.weight for c in self.components}

    @cached_property
    def regression(self) -> Regression | None:
        """The regression of StreamBed that was forced; None where none was."""
        first = self.components[0].predicts
        return first if isinstance(first, Regression) else None

    @property
    def grows(self) -> bool:
        """Whether the MST grows with the slots, so that a number of them can be planned."""
        return self.regression is None or self.regression.slots > 0

    def predict(self, memory_mb: ArrayLike, task_slots: ArrayLike) -> Array:
        """The central MST, records/s, with the shape of the (broadcast) arguments: the geometric mean over all curves,
        or the regression's prediction. Fast, and without an interval."""
        if self.regression is not None:
            return self.regression.predict(memory_mb, task_slots)
        memory, slots = np.broadcast_arrays(np.asarray(memory_mb, np.float64), np.asarray(task_slots, np.float64))
        curves = [(c.weight, c.predicts) for c in self.components if isinstance(c.predicts, DrawnCurves)]
        means = [weight * law.mean_log_mst(memory.ravel(), slots.ravel()) for weight, law in curves]
        return np.asarray(np.exp(np.sum(means, axis=0)).reshape(slots.shape))

    def sustains(self, memory_mb: float, task_slots: ArrayLike, rate: float) -> Array:
        """Probability that the MST of each budget is at least `rate`, (points,); Eq. 1."""
        return self._sustained(memory_mb, np.atleast_1d(np.asarray(task_slots, dtype=np.float64)))(np.array(rate))

    def quantiles(self, memory_mb: float, task_slots: ArrayLike, probabilities: Sequence[float]) -> Array:
        """The MST that each budget's own falls short of with each probability, records/s, not below 0; (points,
        probabilities)."""
        slots = np.atleast_1d(np.asarray(task_slots, dtype=np.float64))
        sustained = self._sustained(memory_mb, slots)
        most = max(c.predicts.most(memory_mb, slots) for c in self.components)
        return np.stack([_largest_sustained(sustained, 1 - p, most, len(slots)) for p in probabilities], axis=-1)

    def interval(self, memory_mb: float, task_slots: int, probability: float = PROBABILITY) -> Interval:
        """The median MST of a budget with the range that it lies in, records/s."""
        tail = (1 - probability) / 2
        low, value, high = map(float, self.quantiles(memory_mb, task_slots, (tail, 0.5, 1 - tail))[0])
        return Interval(value=value, low=low, high=high, probability=probability)

    def _sustained(self, memory_mb: float, slots: Array) -> Callable[[Array], Array]:
        parts = [(c.weight, c.predicts.sustained(memory_mb, slots)) for c in self.components]
        return lambda rate: np.asarray(sum(weight * sustained(rate) for weight, sustained in parts))


def _largest_sustained(sustained: Callable[[Array], Array], certainty: float, most: float, points: int) -> Array:
    """The largest rates that are sustained with this probability, by bisection of their logarithms; 0 where none is."""
    low, high = np.full(points, np.log(_LEAST_RATE)), np.full(points, np.log(most))
    for _ in range(_STEPS):
        middle = (low + high) / 2
        enough = sustained(np.exp(middle)) >= certainty
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    return np.where(low > np.log(_LEAST_RATE), np.exp(low), 0.0)
