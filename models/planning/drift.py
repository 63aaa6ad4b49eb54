"""Whether records still cost in production what was measured: one test per operator and quantity, and one for the MST.

Notation, of one quantity of one operator:
    b_1 .. b_n   its value in each of n measurement runs        B   their mean        s   their standard deviation
    p_1 .. p_k   its value in each of k windows of production   P   their mean
    m            comparisons made                               q   confidence of all of them together

Where nothing has changed and values are normal and alike, P - B has the variance s^2 (1/n + 1/k), so P lies with
probability 1 - (1 - q)/m (Bonferroni) within B +- t s sqrt(1/n + 1/k), t the quantile of Student's distribution with
n - 1 degrees of freedom. The interval is never narrower than a stated share of B: configurations differ by more than
noise, and smaller differences are not worth a new measurement.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import Field

from models.errors import InvalidInput
from models.plan.parts import Interval
from models.schema import Format, Name, NonNegative, PositiveInt

CPU, STATE, BYTES_OUT = "cpu_s_per_record", "state_bytes_per_record", "bytes_out_per_record"
SELECTIVITY, BUSY = "selectivity", "busy_s_per_record"
UNIT_COSTS: Final = (CPU, STATE, BYTES_OUT, SELECTIVITY, BUSY)
"""Quantities of an operator: all but selectivity (records out) are amounts per record in."""
MST: Final = "mst"

Values = Mapping[str, Sequence[float]]
"""Quantity -> its values, one for each run or window in which it is known."""


class DriftTest(Format):
    """One quantity, as measured and in production."""

    operator: Name | None = Field(description="None for a quantity of the whole job.")
    quantity: str = Field(description=f"One of {', '.join(UNIT_COSTS)}, or {MST}, records/s.")
    expected: NonNegative = Field(description="Mean of the measurement runs; of the MST, the plan's prediction.")
    low: NonNegative = Field(description="Range in which a production value is not drift.")
    high: NonNegative
    production: NonNegative = Field(description="Mean over the windows of production.")
    runs: PositiveInt = Field(description="Measurement runs that measured it.")
    windows: PositiveInt = Field(description="Windows of production that have it.")

    @property
    def drifted(self) -> bool:
        return not self.low <= self.production <= self.high

    @property
    def change(self) -> float:
        """Production less expected, over expected; infinite where nothing was expected."""
        if self.expected > 0:
            return self.production / self.expected - 1
        return 0.0 if self.production == self.expected else math.inf


def compare_costs(
    measured: Mapping[str, Values], production: Mapping[str, Values], tolerance: float, confidence: float
) -> tuple[DriftTest, ...]:
    """One comparison for each operator and quantity that both sides know.

    Args:
        measured: operator -> quantity -> values b of the measurement runs.
        production: operator -> quantity -> values p of the windows.
        tolerance: least half-width of the interval as a share of B.
        confidence: q.

    Raises:
        InvalidInput: an operator is on one side only, or nothing can be compared.
    """
    if set(measured) != set(production):
        raise InvalidInput(
            f"production must have the operators that were measured, {', '.join(sorted(measured))}, but has "
            f"{', '.join(sorted(production)) or 'none'}; give samples of this job, of all its operators"
        )
    pairs = [
        (operator, quantity, measured[operator][quantity], production[operator][quantity])
        for operator in measured
        for quantity in UNIT_COSTS
        if measured[operator].get(quantity) and production[operator].get(quantity)
    ]
    if not pairs:
        raise InvalidInput("the production samples hold no records, so nothing can be compared; sample for longer")
    risk = (1 - confidence) / len(pairs)
    return tuple(_compare(operator, quantity, b, p, tolerance, risk) for operator, quantity, b, p in pairs)


def compare_mst(
    predicted: Interval,
    parallelism: Mapping[str, int],
    measured: Mapping[str, tuple[float, float]],
    production: Mapping[str, tuple[float, float]],
    tolerance: float,
    windows: int,
) -> DriftTest | None:
    """The predicted MST, corrected by the operators' costs in production, beside the prediction's interval.

    The rate that saturates the first operator is  C = min_i tasks_i / (r_i u_i). The model's prediction belongs to the
    measured costs, so that for production is  MST C_production / C_measured.

    Args:
        parallelism: tasks of the plan.
        measured, production: operator -> (r_i, records in per source record; u_i, useful seconds per record in).
        tolerance: least half-width of the interval as a share of the prediction.

    Returns:
        None where no operator's useful time is known on both sides.
    """
    shared = [name for name in parallelism if name in measured and name in production]
    now, before = (_saturating_rate(parallelism, side, shared) for side in (production, measured))
    if not (math.isfinite(now) and math.isfinite(before)):
        return None
    return DriftTest(
        operator=None,
        quantity=MST,
        expected=predicted.value,
        low=min(predicted.low, predicted.value * (1 - tolerance)),
        high=max(predicted.high, predicted.value * (1 + tolerance)),
        production=predicted.value * now / before,
        runs=1,
        windows=windows,
    )


def _saturating_rate(
    parallelism: Mapping[str, int], operators: Mapping[str, tuple[float, float]], shared: Sequence[str]
) -> float:
    useful_s = {name: operators[name][0] * operators[name][1] for name in shared}
    return min((parallelism[name] / s for name, s in useful_s.items() if s > 0), default=math.inf)


def _compare(
    operator: str, quantity: str, b: Sequence[float], p: Sequence[float], tolerance: float, risk: float
) -> DriftTest:
    expected, n, k = math.fsum(b) / len(b), len(b), len(p)
    width = tolerance * expected
    if n > 1:
        deviation = math.sqrt(math.fsum((value - expected) ** 2 for value in b) / (n - 1))
        from scipy.special import stdtrit

        t = float(stdtrit(n - 1, 1 - risk / 2))
        width = max(width, t * deviation * math.sqrt(1 / n + 1 / k))
    return DriftTest(
        operator=operator,
        quantity=quantity,
        expected=expected,
        low=max(0.0, expected - width),
        high=expected + width,
        production=math.fsum(p) / k,
        runs=n,
        windows=k,
    )
