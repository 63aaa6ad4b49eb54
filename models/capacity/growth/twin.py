"""A twin as one more candidate: its curve, corrected by what was measured (Kennedy and O'Hagan 2000).

Notation:

    twin(M, n)   MST that the twin predicts, known at some memory sizes and slots, and interpolated between in logarithms
    r            residual at n2, log(MST / twin): normal beforehand, standard deviation LEVEL
    b            tilt: the residual changes with the slots as n^b; normal beforehand, around MEAN_TILT, standard deviation TILT

    log MST(M, n) = log twin(M, n) + r + b log(n / n2) + a log(M / M_ref) + sigma e               (1)

The twin is cheap and wrong by a factor that hardly changes; the measurements are dear and few, and say which factor.
Where they say nothing, the prior is a constant near one that falls by a few per cent over ten times the slots: what a
simulation leaves out takes capacity, and takes more of it in larger jobs. (1) has the form of a growth law with the shape b,
so that the posterior, the draws and the drift beyond n2 are those of any law.
"""

from functools import cached_property
from typing import Final, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field, model_validator

from models.capacity.growth.curves import FAR, DrawnCurves, drawn_fields
from models.capacity.growth.dataset import Array, Dataset
from models.capacity.growth.posterior import Posterior, posterior, reference_memory_mb
from models.capacity.growth.shapes import Extent
from models.schema import Format, Positive

TWIN: Final = "twin"
LEVEL: Final = 0.1
TILT: Final = 0.01
MEAN_TILT: Final = -0.01
TWIN_DRIFT: Final = 0.07
"""Scale of kappa: half of that of the laws."""
_TILTS: Final = MEAN_TILT + TILT * np.linspace(-2.5, 2.5, 21)


class TwinCurve(Format):
    """What a twin predicts."""

    memory_mb: tuple[Positive, ...] = Field(min_length=1, description="Ascending, MiB of a TaskManager.")
    task_slots: tuple[Positive, ...] = Field(min_length=2, description="Ascending.")
    mst: tuple[tuple[Positive, ...], ...] = Field(description="Records/s; a row for each memory, in columns of slots.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in ("memory_mb", "task_slots"):
            values = getattr(self, name)
            if list(values) != sorted(set(values)):
                raise ValueError(f"{name} must ascend without repeats, but got {list(values)}")
        if len(self.mst) != len(self.memory_mb) or any(len(row) != len(self.task_slots) for row in self.mst):
            raise ValueError(
                f"mst must have {len(self.memory_mb)} rows of {len(self.task_slots)} numbers, but got rows of "
                f"{[len(row) for row in self.mst]}"
            )
        return self

    @cached_property
    def _rows(self) -> Array:
        """Log MST, never falling with the slots: where simulations scatter, the mean of those that do."""
        from scipy.optimize import isotonic_regression  # Takes longer to import than most answers to compute.

        return np.stack([isotonic_regression(row).x for row in np.log(np.array(self.mst))])

    def log_mst(self, memory_mb: ArrayLike, task_slots: Array) -> Array:
        """Interpolated between what is known, (points,); beyond the most slots its last slope goes on, beyond the
        memory sizes the nearest one counts."""
        known, slots = np.log(np.array(self.task_slots)), np.log(np.asarray(task_slots, dtype=np.float64))
        rows = np.stack([np.interp(slots, known, row) for row in self._rows])
        slopes = (self._rows[:, -1] - self._rows[:, -2]) / (known[-1] - known[-2])
        rows = rows + slopes[:, None] * np.maximum(slots - known[-1], 0.0) + np.minimum(slots - known[0], 0.0)
        memory = np.broadcast_to(np.log(np.asarray(memory_mb, dtype=np.float64)), slots.shape)
        at = np.interp(memory, np.log(np.array(self.memory_mb)), np.arange(len(self.memory_mb)))
        low = np.floor(at).astype(int)
        high, share = np.minimum(low + 1, len(rows) - 1), at - low
        points = np.arange(len(slots))
        return np.asarray((1 - share) * rows[low, points] + share * rows[high, points])


class TwinCurves(DrawnCurves):
    """Draws of a corrected twin; the shape of each is its tilt."""

    kind: Literal["twin"] = "twin"
    law: Literal["twin"] = TWIN
    curve: TwinCurve

    def growth(self, shape: Array, memory_mb: ArrayLike, task_slots: Array) -> Array:
        tilt = shape[:, :1] * np.log(task_slots / self.most_slots)
        return np.asarray(self.curve.log_mst(memory_mb, task_slots) + tilt)


def fit_twin(curve: TwinCurve, data: Dataset) -> tuple[Posterior, TwinCurves]:
    """The twin's posterior given the observations, and its draws."""
    extent, memory_mb = Extent(data.fewest_slots, data.most_slots), reference_memory_mb(data)
    tilts = _TILTS[:, None]
    twin = curve.log_mst(data.memory_mb, data.task_slots)
    found = posterior(
        data,
        twin + tilts * np.log(data.task_slots / extent.most),
        level=(0.0, LEVEL),
        log_prior=-0.5 * ((_TILTS - MEAN_TILT) / TILT) ** 2,
    )
    ends = np.array([extent.most, FAR * extent.most], dtype=np.float64)
    near_and_far = curve.log_mst(memory_mb, ends) + tilts * np.log(ends / extent.most)
    fields = drawn_fields(tilts, found, extent, memory_mb, near_and_far, TWIN_DRIFT)
    return found, TwinCurves(curve=curve, **fields)
