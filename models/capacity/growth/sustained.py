"""A capacity model, given rates that a job took in production.

Notation, for law k with weight w_k and its equally likely draws j, and the rates R_i that n_i slots with memory M_i took:

    p_kj = prod_i P(MST_j(M_i, n_i) >= R_i)
    w_k' = w_k mean_j p_kj / sum_l w_l mean_j p_lj                                                 (1)

A rate that was taken is a lower bound of the MST, whether more was offered or not (a censored observation: Tobin 1958), so
(1) is Bayes' theorem, and draw j of law k counts p_kj among those of its law. Draws stay equally likely: they are taken anew
from these weights, in equal steps of their sum, so that there is nothing random about them.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from pydantic import Field

from models.capacity.growth.capacity_model import CapacityModel, Weighted
from models.capacity.growth.curves import DrawnCurves
from models.capacity.growth.dataset import Array
from models.schema import Format, Positive, PositiveInt
from models.wording import amount


class Sustained(Format):
    """A rate that a deployed plan took."""

    memory_mb: Positive = Field(description="Of a TaskManager, MiB.")
    task_slots: PositiveInt
    rate: Positive = Field(description="Records/s, mean over windows of production.")
    plan_version: PositiveInt

    @property
    def text(self) -> str:
        """Such as "2,010,000 records/s with 505 slots (plan 2)"."""
        return f"{amount(self.rate)} records/s with {self.task_slots:,} slots (plan {self.plan_version})"


_NEXT_TO_NOTHING: Final = 1e-12
"""Weight of a law that is left out."""


def given(model: CapacityModel, sustained: Sequence[Sustained]) -> CapacityModel:
    """Eq. 1.

    Args:
        model: left as it is if it is a regression, which has no draws, or if all its laws say that these rates are next to
            impossible.
    """
    weighted: list[tuple[float, DrawnCurves]] = []
    for component in model.components:
        curves = component.predicts
        if not isinstance(curves, DrawnCurves):
            return model
        likely = np.prod([curves.each_sustains(one.memory_mb, one.task_slots, one.rate) for one in sustained], axis=0)
        weighted.append((component.weight * float(likely.mean()), curves.chosen(_in_equal_steps(likely))))
    kept = [(weight, curves) for weight, curves in weighted if weight > _NEXT_TO_NOTHING]
    total = sum(weight for weight, _ in kept)
    return (
        CapacityModel(components=tuple(Weighted(weight=w / total, predicts=curves) for w, curves in kept))
        if kept
        else model
    )


def _in_equal_steps(weights: Array) -> "np.ndarray":
    """As many indices as there are weights, each as often as its weight says."""
    reached = np.cumsum(weights)
    return np.asarray(np.searchsorted(reached, (np.arange(len(weights)) + 0.5) / len(weights) * reached[-1]))
