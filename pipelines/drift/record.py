"""The report of a comparison with production: the comparisons, and a summary in words."""

from typing import Final, Literal

from pydantic import Field

from models.planning.drift import BUSY, BYTES_OUT, CPU, MST, SELECTIVITY, STATE, DriftTest
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, PositiveInt
from models.wording import amount

MOST_NAMED: Final = 5
"""Most drifts that a reason names; the report holds all."""
_NAMES: Final = {
    CPU: "CPU time per record",
    STATE: "state access per record",
    BYTES_OUT: "output per record",
    SELECTIVITY: "records out per record in",
    BUSY: "useful time per record",
    MST: "the plan's predicted MST, corrected by production,",
}
_PREFIXES: Final = ((1.0, ""), (1e-3, "m"), (1e-6, "u"), (1e-9, "n"))


class Busyness(Format):
    """Busyness of an operator's tasks in production, and the range expected from the measurements at these rates."""

    operator: Name
    production: NonNegative
    expected: NonNegative
    low: NonNegative
    high: NonNegative


class DriftReport(Format):
    """Production compared with the measurements of a plan."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: Name
    version: PositiveInt = Field(description="Version of the report: 1 for the job's first.")
    created_at: str = Field(description="ISO 8601, UTC.")
    plan_version: PositiveInt
    run: str = Field(description="The pipeline run that measured the job for that plan.")
    source_rate: NonNegative = Field(description="Mean over the windows of production, records/s.")
    as_planned: bool = Field(
        False, exclude_if=lambda as_planned: not as_planned, description="Whether production ran the plan's tasks."
    )
    samples: dict[str, str] = Field(description="Each file of production samples -> its SHA-256.")
    drifted: bool
    reason: str
    comparisons: tuple[DriftTest, ...]
    busyness: tuple[Busyness, ...]


def reason_of(comparisons: tuple[DriftTest, ...], busyness: tuple[Busyness, ...]) -> str:
    """The drifts, the largest change first; without any, the number of comparisons."""
    drifted = sorted((c for c in comparisons if c.drifted), key=lambda c: -abs(c.change))
    if not drifted:
        operators = {c.operator for c in comparisons if c.operator is not None}
        return f"all {len(comparisons)} comparisons of {len(operators)} operators are within the measured range"
    busy = {b.operator: b for b in busyness}
    named = [_in_words(c, busy.get(c.operator or "")) for c in drifted[:MOST_NAMED]]
    more = len(drifted) - len(named)
    return "; ".join(named) + (f"; and {more} more" if more else "")


def _in_words(one: DriftTest, busy: Busyness | None) -> str:
    who = f"{one.operator}: " if one.operator is not None else ""
    change = "where none was measured" if one.expected == 0 else f"{one.change:+.0%}"
    text = (
        f"{who}{_NAMES[one.quantity]} is {_amount(one, one.production)} ({change}), and {_amount(one, one.low)} to "
        f"{_amount(one, one.high)} was expected"
    )
    if one.quantity == BUSY and busy is not None:
        text += f" (tasks are busy {busy.production:.1%}, and {busy.low:.1%} to {busy.high:.1%} was expected)"
    return text


def _amount(one: DriftTest, value: float) -> str:
    if one.quantity in (CPU, BUSY):
        factor, prefix = next((p for p in _PREFIXES if value >= p[0]), (1e-9, "n"))
        return f"{value / factor:.3g} {prefix}s"
    if one.quantity in (STATE, BYTES_OUT):
        return f"{value:,.3g} bytes" if value < 1000 else f"{value:,.0f} bytes"
    return f"{amount(value)} records/s" if one.quantity == MST else f"{value:.3g}"
