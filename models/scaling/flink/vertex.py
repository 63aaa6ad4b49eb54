"""How many tasks an operator should have, from its capacity and the limits on it.

    factor = wanted capacity / true rate / scalability, within [1 - scale-down.max-factor, 1 + scale-up.max-factor]
    tasks  = ceil(factor x tasks now), within the limits, aligned to key groups or partitions

The limits alone never force a change: the current tasks always count as within them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.scaling.flink.alignment import Mode, align
from models.scaling.flink.settings import FlinkSettings
from models.scaling.rates import OperatorMetrics

_MOST_TASKS: Final = 2**31 - 1
_ROUNDING: Final = 1e-12
"""Share by which rounding may exceed a whole number of tasks without adding one more."""
_NO_LIMIT: Final = (_MOST_TASKS, None)


@dataclass(frozen=True)
class Bounds:
    """Limits of the operators' tasks; arrays are int64[operators]."""

    lower: np.ndarray
    upper: np.ndarray
    shares: Sequence[int | None]
    """Key groups or source partitions; None where records are distributed by neither."""

    @classmethod
    def of(cls, operators: Sequence[OperatorMetrics | None], current: np.ndarray, settings: FlinkSettings) -> "Bounds":
        """Those of the settings and of the job, whose maximum parallelism caps them; `current` lies within the former."""
        limits = [
            (m.max_parallelism or m.key_groups or _MOST_TASKS, m.partitions or m.key_groups) if m else _NO_LIMIT
            for m in operators
        ]
        return cls(
            np.minimum(current, settings.vertex_min_parallelism),
            np.minimum(np.maximum(current, settings.vertex_max_parallelism), [most for most, _ in limits]),
            [shares for _, shares in limits],
        )


def scaling_factors(
    wanted_capacity: np.ndarray, true_rate: np.ndarray, scalability: Sequence[float] | float, settings: FlinkSettings
) -> np.ndarray:
    """Tasks wanted over tasks now, within the limits on one change; all float64[operators]."""
    factors = wanted_capacity / true_rate / np.asarray(scalability)
    limited: np.ndarray = np.clip(factors, 1 - settings.max_scale_down_factor, 1 + settings.max_scale_up_factor)
    return limited


def parallelism(current: np.ndarray, factors: np.ndarray, bounds: Bounds, mode: Mode) -> list[int]:
    """Tasks for `factors` times the current capacity; int64[operators] and float64[operators]."""
    target = np.minimum(np.maximum(bounds.lower, np.ceil(factors * current * (1 - _ROUNDING))), bounds.upper).astype(
        np.int64
    )
    tasks: list[int] = target.tolist()
    now, lower, upper = current.tolist(), bounds.lower.tolist(), bounds.upper.tolist()
    for i in np.flatnonzero(target != current).tolist():
        shares = bounds.shares[i]
        if shares is not None:
            tasks[i] = align(mode, now[i], tasks[i], shares, lower[i], upper[i])
    return tasks
