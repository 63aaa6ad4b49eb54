"""Drift: numbers that can be checked by hand, and what must hold of any."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InvalidInput
from models.plan.parts import Interval
from models.planning.drift import BUSY, CPU, MST, SELECTIVITY, STATE, compare_costs, compare_mst


def test_the_interval_is_that_of_student_where_it_is_wider_than_the_tolerance() -> None:
    """B = 10, s = sqrt(2/3), n = 4, k = 2; t of 3 degrees of freedom at 97.5 % is 3.182446 (tables)."""
    (one,) = compare_costs({"map": {CPU: [9.0, 11.0, 10.0, 10.0]}}, {"map": {CPU: [12.0, 12.6]}}, 0.1, 0.95)
    half = 3.182446 * math.sqrt(2 / 3) * math.sqrt(1 / 4 + 1 / 2)
    assert (one.low, one.high) == (pytest.approx(10 - half, rel=1e-6), pytest.approx(10 + half, rel=1e-6))
    assert half == pytest.approx(2.2503, abs=1e-4)
    assert (one.production, one.change) == (12.3, pytest.approx(0.23))
    assert one.drifted


def test_the_confidence_is_that_of_all_comparisons_together() -> None:
    """Two of them: 97.5 % each, so t of 1 degree of freedom at 98.75 %, which is tan(pi (0.9875 - 0.5)) = 25.452."""
    compared = compare_costs({"map": {CPU: [1.0, 3.0], STATE: [5.0]}}, {"map": {CPU: [2.0], STATE: [5.0]}}, 0.1, 0.95)
    cpu = compared[0]
    assert cpu.high == pytest.approx(2 + 25.452 * math.sqrt(2) * math.sqrt(1 / 2 + 1), rel=1e-4)
    assert cpu.low == 0.0, "a cost is never below 0"


def test_what_was_measured_once_or_always_alike_may_differ_by_the_tolerance() -> None:
    measured = {"map": {SELECTIVITY: [0.5], CPU: [2.0, 2.0]}}
    assert not any(c.drifted for c in compare_costs(measured, {"map": {SELECTIVITY: [0.55], CPU: [1.8]}}, 0.1, 0.99))
    drifted = compare_costs(measured, {"map": {SELECTIVITY: [0.56], CPU: [1.79]}}, 0.1, 0.99)
    assert [c.quantity for c in drifted if c.drifted] == [CPU, SELECTIVITY]


def test_state_that_was_never_touched_drifts_as_soon_as_it_is() -> None:
    (one,) = compare_costs({"map": {STATE: [0.0, 0.0]}}, {"map": {STATE: [1.0]}}, 0.1, 0.99)
    assert one.drifted and one.change == math.inf
    (none,) = compare_costs({"map": {STATE: [0.0, 0.0]}}, {"map": {STATE: [0.0]}}, 0.1, 0.99)
    assert not none.drifted and none.change == 0.0


def test_quantities_missing_on_one_side_are_not_compared() -> None:
    compared = compare_costs({"map": {CPU: [1.0], BUSY: [1.0]}}, {"map": {CPU: [1.0], BUSY: []}}, 0.1, 0.99)
    assert [c.quantity for c in compared] == [CPU]


@pytest.mark.parametrize(
    ("production", "message"),
    [({"other": {CPU: [1.0]}}, "operators that were measured, map, but has other"), ({"map": {}}, "hold no records")],
)
def test_production_that_cannot_be_compared_is_refused(production: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        compare_costs({"map": {CPU: [1.0]}}, production, 0.1, 0.99)


def test_the_mst_falls_with_the_operator_that_saturates_first() -> None:
    """4 tasks of 1 ms and 10 of 2 ms: 4000 and 5000 records/s. At 3 ms the second saturates first, at 3333: 5/6."""
    predicted = Interval(value=3600.0, low=3300.0, high=3900.0)
    tasks, measured = {"map": 4, "window": 10}, {"map": (1.0, 0.001), "window": (1.0, 0.002)}
    one = compare_mst(predicted, tasks, measured, {"map": (1.0, 0.001), "window": (1.0, 0.003)}, 0.1, 2)
    assert one is not None
    assert (one.quantity, one.operator, one.production) == (MST, None, pytest.approx(3000.0))
    assert (one.low, one.high) == (pytest.approx(3240.0), pytest.approx(3960.0)), "10 % are wider than the interval"
    assert one.drifted
    halved = compare_mst(predicted, tasks, measured, {"map": (2.0, 0.001), "window": (1.0, 0.002)}, 0.1, 2)
    assert halved is not None and halved.production == pytest.approx(1800.0), "twice the records a source record"
    assert compare_mst(predicted, tasks, measured, {}, 0.1, 2) is None


share = st.floats(-1.0, 1.0)


@given(
    mean=st.floats(1e-9, 1e9),
    measured=st.lists(share, min_size=2, max_size=12),
    production=st.lists(share, min_size=1, max_size=6),
)
def test_values_within_half_the_tolerance_of_one_mean_never_drift(
    mean: float, measured: list[float], production: list[float]
) -> None:
    """|P - B| <= 0.04 mean, and the interval is 0.1 B >= 0.098 mean wide."""
    spread = [mean * (1 + 0.02 * s) for s in measured]
    (one,) = compare_costs(
        {"map": {CPU: spread}}, {"map": {CPU: [mean * (1 + 0.02 * s) for s in production]}}, 0.1, 0.99
    )
    assert not one.drifted


@given(
    mean=st.floats(1e-9, 1e9),
    measured=st.lists(share, min_size=2, max_size=12),
    factor=st.floats(1.05, 10.0),
    up=st.booleans(),
)
def test_costs_beyond_the_interval_always_drift(mean: float, measured: list[float], factor: float, up: bool) -> None:
    spread = {"map": {CPU: [mean * (1 + 0.02 * s) for s in measured]}}
    (same,) = compare_costs(spread, {"map": {CPU: [mean]}}, 0.1, 0.99)
    beyond = same.expected + factor * (same.high - same.expected) if up else max(0.0, same.low / factor)
    (one,) = compare_costs(spread, {"map": {CPU: [beyond]}}, 0.1, 0.99)
    assert one.drifted == (up or same.low > 0)


@given(exponent=st.integers(-6, 6), values=st.lists(st.floats(1.0, 2.0), min_size=3, max_size=8))
def test_drift_does_not_depend_on_the_unit(exponent: int, values: list[float]) -> None:
    unit, (first, *rest) = 2.0**exponent, values
    found = [
        compare_costs({"map": {CPU: [u * v for v in rest]}}, {"map": {CPU: [u * first]}}, 0.1, 0.9)[0]
        for u in (1.0, unit)
    ]
    assert found[0].drifted == found[1].drifted
    assert found[1].high == pytest.approx(unit * found[0].high)


def test_false_alarms_are_as_rare_as_stated() -> None:
    """Of 1000 jobs of 10 operators with 3 noisy quantities each, none changed: about 50 alarms are allowed at 95 %."""
    random = np.random.default_rng(7)
    alarms = 0
    for _ in range(1000):
        sides = [
            {f"o{i}": {q: random.normal(1.0, 0.05, n).tolist() for q in (CPU, BUSY, STATE)} for i in range(10)}
            for n in (12, 3)
        ]
        alarms += any(c.drifted for c in compare_costs(sides[0], sides[1], 1e-6, 0.95))
    assert 30 <= alarms <= 70
