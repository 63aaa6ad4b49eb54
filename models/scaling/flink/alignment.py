"""Aligning the number of tasks with the key groups or source partitions that they share.

With N key groups or partitions, p tasks get floor(N / p) of them, some one more; only a divisor of N is even. All modes
search upwards from the target: for a scale-up as far as the limits allow, for a scale-down up to the current tasks.
Release 1.6 searches up to N / 2, in either direction, and otherwise keeps the target.
"""

from functools import lru_cache

from models.scaling.flink.settings import AdjustMode, AlignmentMode, FormerAlignment

Mode = AlignmentMode | AdjustMode | FormerAlignment


@lru_cache(maxsize=65536)
def align(mode: Mode, current: int, target: int, shares: int, lower: int, upper: int) -> int:
    """Tasks of an operator.

    Args:
        current: tasks that run.
        target: tasks that the rates ask for; within the limits, and not `current`.
        shares: N.
        lower: fewest tasks.
        upper: most tasks.

    `BALANCED` and `EVENLY_SPREAD` keep the target if nothing fits. The two modes of earlier releases then search
    downwards, and keep the current tasks if that would reverse the direction of the scaling.
    """
    if mode is AlignmentMode.OFF:
        return target
    if mode is FormerAlignment.UP_TO_HALF:
        return next((p for p in range(target, min(shares // 2, upper) + 1) if shares % p == 0), target)
    end = min(shares, upper) if target > current else min(current, shares, upper)
    fitting = _first_fitting(target, end, shares, mode in (AlignmentMode.BALANCED, AdjustMode.MAXIMIZE_UTILISATION))
    if fitting is not None:
        return fitting
    if isinstance(mode, AlignmentMode):
        return target
    below = max(_below(target, shares), lower)
    turned_round = below <= current if target > current else below >= current
    return current if turned_round else below


def _first_fitting(target: int, end: int, shares: int, less_is_enough: bool) -> int | None:
    """The first of target .. end that divides N or, if that is enough, gives a task fewer shares than the target does."""
    if target > end:
        return None
    fitting = next((p for p in range(target, end + 1) if shares % p == 0), None)
    if less_is_enough:
        # floor(N / p) = q for the last time at p = floor(N / q).
        fewer = shares // (shares // target) + 1
        if fewer <= end and (fitting is None or fewer < fitting):
            return fewer
    return fitting


def _below(target: int, shares: int) -> int:
    """The fewest tasks that get no more shares than with the target, or one less if that is a divisor; 0 if there is none."""
    p = shares // (shares // target + 1)
    return p if p == 0 or shares % p == 0 else p + 1
