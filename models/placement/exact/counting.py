"""The number of distinct plans, without enumerating them.

A plan is a multiset of patterns for each type of worker. Patterns join one by one, each any number of times:

    f[w, r] += f[w - 1, r - x]        for w = 1..W_j, over all r at once

where f[w, r] is the number of multisets of w workers of the type that hold r tasks of the operators (and all workers of
the types before). Free slots count as tasks of one more operator, so that every worker is full: the total that w workers
hold is then known, and the largest of the numbers in r follows from the others and is left out.

Thresholds limit each worker by itself, so they only exclude patterns. Counts may exceed 64 bits: they are computed modulo
as many coprime numbers as their size requires, and combined by the Chinese remainder theorem.
"""

import math
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from models.errors import SluiceError
from models.placement.cost import load_limits
from models.placement.exact.patterns import Patterns
from models.placement.kernels.problem import Floats, Ints
from models.placement.problem import Problem
from models.placement.time_limit import TimeLimit

LARGEST_MODULUS: Final = 2**62
"""The sum of two numbers below it fits into 64 bits."""
MOST_STATES: Final = 50_000_000
"""Most numbers in memory at once, 8 bytes each."""
TOO_MANY: Final = "plans are too many to count: {0}; use fewer tasks or workers, or tighter thresholds"


def count_within(problem: Problem, thresholds: Floats, time: TimeLimit) -> int:
    """Distinct plans whose costs stay within the thresholds (3,). O(patterns x workers x states).

    Raises:
        SluiceError: there are too many patterns or states, or the time limit was reached.
    """
    nothing = np.zeros(3)
    patterns = Patterns.within(problem, load_limits(problem, thresholds), nothing, nothing, 0.0, windows=())
    if patterns is None:
        raise SluiceError(TOO_MANY.format("a worker can hold its tasks in millions of ways"))
    slots = problem.slots[np.unique(problem.worker_type, return_index=True)[1]]
    wanted = np.append(problem.parallelism, problem.slots.sum() - problem.tasks)
    held = np.column_stack([patterns.counts, slots[patterns.kind] - patterns.counts.sum(axis=1)]).astype(np.int64)
    kept = np.delete(np.arange(len(wanted)), np.argmax(wanted))
    states = (int(patterns.workers.max()) + 1) * math.prod(int(number) + 1 for number in wanted[kept])
    if states > MOST_STATES:
        raise SluiceError(
            TOO_MANY.format(f"{states:,} partial plans would be compared, at most {MOST_STATES:,} can be")
        )
    rows = [held[patterns.kind == j][:, kept] for j in range(len(patterns.workers))]
    estimate = _count(rows, patterns.workers, wanted[kept], None, time)
    answer, product = 0, 1
    moduli = _coprime()
    while product <= 2 * estimate:
        modulus = next(moduli)
        rest = int(_count(rows, patterns.workers, wanted[kept], modulus, time))
        answer += product * ((rest - answer) * pow(product, -1, modulus) % modulus)
        product *= modulus
    return answer


def _count(rows: list[Ints], workers: Ints, wanted: Ints, modulus: int | None, time: TimeLimit) -> float:
    """The count, approximately or modulo a number.

    Args:
        rows: (K, m) patterns of each type of worker, with the numbers of tasks that are kept.
        workers: (T,) of each type; wanted: (m,) tasks in all.
    """
    shape = tuple(int(number) + 1 for number in wanted)
    before: npt.NDArray[Any] = np.zeros(shape, dtype=np.float64 if modulus is None else np.int64)
    before[(0,) * len(shape)] = 1
    for own, number in zip(rows, workers.tolist(), strict=True):
        f = [before, *(np.zeros_like(before) for _ in range(number))]
        for row in own.tolist():
            if time.spent:
                raise SluiceError(f"counting did not end within {time.time_limit_s:g} s; allow more time")
            to = tuple(slice(x, None) for x in row)
            of = tuple(slice(0, size - x) for size, x in zip(shape, row, strict=True))
            for w in range(1, number + 1):
                into = f[w][to]
                np.add(into, f[w - 1][of], out=into)
                if modulus is not None:
                    np.subtract(into, modulus, out=into, where=into >= modulus)
        before = f[number]
    last: float = before[(-1,) * len(shape)].item()
    return last


def _coprime() -> Iterator[int]:
    """Pairwise coprime numbers, each as large as possible."""
    product = 1
    for modulus in count(LARGEST_MODULUS, -1):
        if math.gcd(product, modulus) == 1:
            product *= modulus
            yield modulus
