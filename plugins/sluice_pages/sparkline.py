"""A small curve of rates over time, as the coordinates of an SVG of 120 by 30."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipelines.pages.operation import RatePoint

WIDTH: Final = 120.0
HEIGHT: Final = 30.0
_MARGIN: Final = 3.0
"""Between the curve and the edges, for the width of its line."""


@dataclass(frozen=True)
class Sparkline:
    """Coordinates from the upper left corner; the scale is from the lowest to the highest of all rates and the target."""

    points: str
    """`x,y x,y ...`, the first rate first."""
    target: float
    """Height of the target rate."""
    low: float
    """Lowest rate, records/s."""
    high: float


def sparkline(points: Sequence[RatePoint], target: float) -> Sparkline | None:
    """The curve of rates in order of time; None where fewer than two times are known."""
    began = points[0].seen_at if points else None
    if began is None or points[-1].seen_at == began:
        return None
    whole = (points[-1].seen_at - began).total_seconds()
    rates = [point.rate for point in points]
    bottom, top = min(*rates, target), max(*rates, target)

    def height(rate: float) -> float:
        part = (rate - bottom) / (top - bottom) if top > bottom else 0.5
        return round(HEIGHT - _MARGIN - (HEIGHT - 2 * _MARGIN) * part, 1)

    def place(point: RatePoint) -> float:
        return round(_MARGIN + (WIDTH - 2 * _MARGIN) * (point.seen_at - began).total_seconds() / whole, 1)

    line = " ".join(f"{place(point):g},{height(point.rate):g}" for point in points)
    return Sparkline(line, height(target), min(rates), max(rates))
