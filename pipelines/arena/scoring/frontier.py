"""The frontier of a policy: the fewest task-hours for each share of late records, over the values of its knob.

Notation: c task-hours; l late share, the share of records that wait longer than the objective, 0-1; l* = 1 - attainment.
A point (c, l) is dominated if another has no more of both and less of one.

Late shares are compared on a logarithmic scale, on which attainments of 0.9, 0.99 and 0.999 are equally far apart. Below
LEAST_LATE they are equal: 1e-4 of the 110 minutes that a pattern is scored is less than a second of records, and a replay
reports every 5 s.

| figure | definition |
|---|---|
| cost at equal attainment | least c of a point that holds l*, or of a mixture of two points whose mean l is l* |
| hypervolume | share of the box 0 <= c <= C, LEAST_LATE <= l <= 1 (l logarithmic) that some point dominates |

The hypervolume is that of Zitzler and Thiele (1999). C, its reference, is a tenth more than the
most task-hours on the frontier of any policy of the group: the same for all, and beyond the last point of each, which would
otherwise not count.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

LEAST_LATE: Final = 1e-4
"""Late shares up to here count as equal."""
REFERENCE: Final = 1.1
"""C over the most task-hours on a frontier."""


@dataclass(frozen=True)
class FrontierPoint:
    """A policy with one value of its knob."""

    value: float
    """Of the knob."""
    task_hours: float
    late_share: float
    """Share of the records that wait longer than the objective."""


@dataclass(frozen=True)
class AttainedCost:
    """What the attainment costs."""

    task_hours: float
    interpolated: bool
    """False if even the cheapest setting on the frontier attains it: a cheaper one, not replayed, may attain it, too."""


@dataclass(frozen=True)
class NotAttained:
    """No replayed setting attains it."""

    least_late_share: float
    """Of the most punctual one."""


AttainmentCost = AttainedCost | NotAttained


def frontier(points: Iterable[FrontierPoint]) -> tuple[FrontierPoint, ...]:
    """The points that no other dominates, by ascending task-hours; of equal ones the first."""
    front: list[FrontierPoint] = []
    for point in sorted(points, key=lambda p: (p.task_hours, p.late_share)):
        if not front or _clipped(point.late_share) < _clipped(front[-1].late_share):
            front.append(point)
    return tuple(front)


def attainment_cost(front: Sequence[FrontierPoint], attainment: float) -> AttainmentCost:
    """The task-hours at which a frontier attains a share of records within the objective.

    Args:
        front: as `frontier` returns it, with one point or more.
        attainment: 0-1.
    """
    most = _clipped(1 - attainment)
    first = next((i for i, p in enumerate(front) if _holds(p.late_share, most)), None)
    if first is None:
        return NotAttained(front[-1].late_share)
    if first == 0:
        return AttainedCost(front[0].task_hours, interpolated=False)
    cheapest = front[first].task_hours
    mixed = min(_mixture(late, held, most) for late in front[:first] for held in front[first:])
    return AttainedCost(min(mixed, cheapest), interpolated=True)


def _mixture(late: FrontierPoint, held: FrontierPoint, most: float) -> float:
    """Task-hours of the two settings in turns, each for such a share of the records that a share `most` is late."""
    part = (late.late_share - most) / (late.late_share - held.late_share)
    return late.task_hours + part * (held.task_hours - late.task_hours)


def holds(late_share: float, attainment: float) -> bool:
    """Whether a late share is within an attainment."""
    return _holds(late_share, _clipped(1 - attainment))


def hypervolume(front: Sequence[FrontierPoint], most_task_hours: float) -> float:
    """The dominated share of the box, 0-1.

    Args:
        front: as `frontier` returns it.
        most_task_hours: C; points with more dominate nothing.
    """
    ends = [*(p.task_hours for p in front[1:]), most_task_hours]
    area = sum(
        max(min(end, most_task_hours) - point.task_hours, 0.0) * -math.log(_clipped(point.late_share))
        for point, end in zip(front, ends, strict=True)
    )
    return area / (most_task_hours * -math.log(LEAST_LATE)) if most_task_hours > 0 else 0.0


def _holds(late_share: float, most: float) -> bool:
    """A share that equals the allowed one but for rounding is within it."""
    return _clipped(late_share) <= most * (1 + 1e-9)


def _clipped(late_share: float) -> float:
    return min(max(late_share, LEAST_LATE), 1.0)
