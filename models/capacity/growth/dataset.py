"""The observations that a capacity model is fitted to, as arrays."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from models.errors import InvalidInput

Array = NDArray[np.float64]

LEAST_SPAN: Final = 2.0
"""Most over fewest task slots that the lower half of the observations needs, to show how the MST grows."""


class MeasuredBudget(Protocol):
    """What a data set is made of; an `Observation` is one."""

    @property
    def memory_mb(self) -> float: ...
    @property
    def task_slots(self) -> int: ...
    @property
    def mst(self) -> float: ...


@dataclass(frozen=True, eq=False)
class Dataset:
    """The observations D, in the order of measurement; arrays of shape (n,) that cannot be written to."""

    memory_mb: Array
    task_slots: Array
    mst: Array

    def __post_init__(self) -> None:
        for name in ("memory_mb", "task_slots", "mst"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.ndim != 1 or len(values) != len(self.mst) or len(values) == 0:
                raise InvalidInput("memory_mb, task_slots and mst must be lists of the same length, at least 1")
            if not np.all(np.isfinite(values) & (values > 0)):
                raise InvalidInput(f"{name} must be finite and above 0, but got {values.tolist()}")
            values.setflags(write=False)
            object.__setattr__(self, name, values)

    @classmethod
    def of(cls, observations: Iterable[MeasuredBudget]) -> Self:
        """Collect the budgets and MSTs of observations."""
        rows = [(o.memory_mb, o.task_slots, o.mst) for o in observations]
        if not rows:
            raise InvalidInput("a data set needs at least one observation, but there is none")
        memory_mb, task_slots, mst = np.array(rows, dtype=np.float64).T
        return cls(memory_mb, task_slots, mst)

    def __len__(self) -> int:
        return len(self.mst)

    def rows(self, index: ArrayLike) -> Self:
        """The observations at `index` (positions, or a mask)."""
        at = np.asarray(index)
        return type(self)(self.memory_mb[at], self.task_slots[at], self.mst[at])

    @property
    def fewest_slots(self) -> int:
        return int(self.task_slots.min())

    @property
    def most_slots(self) -> int:
        return int(self.task_slots.max())


def shows_growth(data: Dataset) -> bool:
    """Whether the lower half of the observations, by task slots, spans enough of them to show how the MST grows.

    Enough is a factor of 2, or the square root of the factor that all observations span, if that is less. Equal slots are
    ordered by memory, then by the order of measurement; of an odd number the middle one is in the lower half.
    """
    order = np.lexsort((data.memory_mb, data.task_slots))
    lower = data.task_slots[order[: (len(data) + 1) // 2]]
    if len(lower) < 3 or np.ptp(lower) == 0:
        return False
    return bool(lower.max() / lower.min() >= min(LEAST_SPAN, math.sqrt(data.most_slots / data.fewest_slots)))
