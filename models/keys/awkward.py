"""Numbers of key groups that few numbers of tasks share evenly.

Only a divisor of the G key groups is an even number of tasks. Between neighbouring divisors d < d' of a power of two lies a
factor of 2, of a prime one of G: a job that outgrows d tasks is even again at d' only. A number is awkward here where some
d' > 2 d. Flink's own default is a power of two (`models/keys/groups.py`), so only a stated maximum parallelism can be awkward.
"""

import math
from itertools import pairwise
from typing import Final

from models.keys.groups import MOST_KEY_GROUPS

WIDEST_STEP: Final = 2
"""Factor between neighbouring divisors of a power of two."""
LOWER_BY: Final = 0.1
"""Share by which a number that is proposed in place of an awkward one may be lower."""


def divisors(number: int) -> list[int]:
    """Ascending, 1 and the number included."""
    low = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return sorted({*low, *(number // n for n in low)})


def widest_step(groups: int) -> tuple[int, int]:
    """The neighbouring divisors with the largest factor between them, the lowest of those that are alike; (1, 1) for 1."""
    return max(pairwise(divisors(groups)), key=lambda pair: pair[1] / pair[0], default=(1, 1))


def is_awkward(groups: int) -> bool:
    """Whether a step between neighbouring divisors is wider than a power of two has."""
    below, above = widest_step(groups)
    return above > WIDEST_STEP * below


def replacements(groups: int) -> tuple[int, ...]:
    """Numbers that are not awkward: the one with the most divisors at most a tenth below, if there is any, and the next power
    of two that Flink allows."""
    lower = [n for n in range(round((1 - LOWER_BY) * groups), groups) if n > 1 and not is_awkward(n)]
    power = 1 << (groups - 1).bit_length()
    best = max(lower, key=lambda n: (len(divisors(n)), n), default=None)
    return tuple(n for n in (best, power) if n is not None and n <= MOST_KEY_GROUPS)


def awkward_key_groups(setting: str, groups: int | None) -> str | None:
    """A warning with what to set instead; None where the number is not awkward, or Flink chooses it.

    Args:
        setting: what states them, in words.
    """
    if groups is None or not is_awkward(groups):
        return None
    below, above = widest_step(groups)
    why = f"is prime, so that only 1 or {groups} tasks share them evenly"
    if (below, above) != (1, groups):
        why = f"has few divisors: no number of tasks between {below} and {above} shares them evenly"
    return (
        f"{setting}: {groups} {why}; set {' or '.join(map(str, replacements(groups)))} (Flink's own default is a power of "
        "two) before the job has state, which Flink restores with the same maximum parallelism only"
    )
