"""Bottlenecks from backpressure, for Dhalion and HPA-Varga (evaluation paper, sections 4.1 and 4.4)."""

from collections.abc import Collection, Iterable
from typing import Final

from models.errors import InvalidInput
from models.scaling.rates import Rates

THRESHOLD: Final = 0.1
"""Share of time from which on an operator counts as backpressured: up to 10 % is `OK` in Flink's web interface."""

_SHOWN: Final = 5


def measured(rates: Rates, metric: str, operators: Iterable[str], policy: str) -> dict[str, float]:
    """A metric of the operators named.

    Raises:
        InvalidInput: one of them lacks it.
    """
    values: dict[str, float] = {}
    missing: list[str] = []
    for name in operators:
        value = getattr(rates.operators.get(name), metric, None)
        if value is None:
            missing.append(name)
        else:
            values[name] = value
    if missing:
        shown = ", ".join(repr(name) for name in missing[:_SHOWN]) + (", ..." if len(missing) > _SHOWN else "")
        raise InvalidInput(
            f"policy {policy!r} decides by {metric!r}, which is missing for {shown}; add it to the rates"
        )
    return values


def bottlenecks(rates: Rates, backpressured: Collection[str], lagging: Collection[str]) -> tuple[str, ...]:
    """Operators that are not backpressured themselves while one upstream of them is, in topological order.

    Args:
        backpressured: operators that are.
        lagging: sources whose log counts as backpressured; the log that a source reads is upstream of it.
    """
    return tuple(
        name
        for name in rates.order
        if name not in backpressured and (name in lagging or any(u in backpressured for u in rates.upstream(name)))
    )
