"""Shapes of growth: StreamBed's formulas, BIDS2 itself, and the physical bounds."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.capacity.bids2 import bids2
from models.capacity.growth.shapes import LAWS, Extent, log_growth, shapes_of
from models.capacity.observation import OperatorRates

EXTENT = Extent(9, 48)


def growth(law: str, shape: list[float], slots: list[float], extent: Extent = EXTENT) -> np.ndarray:
    return np.exp(log_growth(law, np.array([shape]), np.array(slots, dtype=float), extent)[0])


@pytest.mark.parametrize(
    ("law", "phi", "offset"),
    # c (phi(n) - offset), with the growth at 9 slots that b = 0.5 stands for.
    [
        ("linear", lambda n: n, 9 - 1 / 0.5),
        ("log", np.log1p, np.log(10) - 1 / (0.5 * 10)),
        ("sqrt", np.sqrt, 3 - 1 / (0.5 * 6)),
    ],
)
def test_streambeds_laws_are_their_formulas(law, phi, offset):
    slots = np.array([9.0, 20.0, 1000.0])
    expected = (phi(slots) - offset) / (phi(9.0) - offset)
    np.testing.assert_allclose(growth(law, [0.5], list(slots)), expected)


def test_a_power_law_has_its_offset():
    # c (n - 7)^0.8
    np.testing.assert_allclose(growth("power", [0.5, 0.8], [9, 20, 107]), (np.array([2, 13, 100]) / 2) ** 0.8)


@pytest.mark.parametrize("work", [0.2, 1.0, 3.0])
def test_the_even_law_is_what_bids2_makes_of_slots(work):
    """A heavy operator beside three that share `work` between them."""
    costs = [1.0, *[work / 3] * 3]
    operators = [
        OperatorRates(name=f"o{i}", true_rate_per_task=1 / cost, records_in_per_source_record=1.0)
        for i, cost in enumerate(costs)
    ]
    extent = Extent(4, 40)
    slots = [4, 5, 8, 13, 40, 400]
    dealt = [bids2(operators, n).source_rate for n in slots]
    # Whole tasks fall short of shares of tasks, by less than one task of each operator.
    ratio = growth("even", [work, 0.0], slots, extent) / dealt
    assert np.all(ratio >= 1 - 1e-9)
    assert ratio[0] == pytest.approx(1.0)
    assert ratio[-1] < 1.02


def test_the_fullest_task_decides_where_loads_vary():
    """By simulation: loads are normal with a spread of 10 % around an even share."""
    rng = np.random.default_rng(0)
    for tasks in (2, 10, 100):
        fullest = (1 + 0.1 * rng.normal(size=(20_000, tasks))).max(axis=1).mean()
        assert growth("even", [0.0, 0.1], [8 + tasks])[0] == pytest.approx(tasks / fullest, rel=0.005)


def test_hot_keys_cap_what_more_tasks_bring():
    # From 10 tasks on: with t = n - 8 tasks, t / (1 + t / 10)^0.9.
    tasks = np.array([1.0, 10.0, 100.0])
    expected = tasks / (1 + tasks / 10) ** 0.9 * 1.1**0.9
    np.testing.assert_allclose(growth("skewed", [0.0, 10.0, 0.1], [9, 18, 108]), expected)
    np.testing.assert_allclose(
        growth("skewed", [0.4, 1e9, 0.1], [9, 48]), growth("even", [0.4, 0.0], [9, 48]), rtol=1e-6
    )


@given(st.sampled_from(LAWS), st.integers(1, 30), st.integers(1, 200))
def test_every_shape_keeps_the_physical_bounds(law, fewest, more):
    """It does not fall, and grows no faster than the tasks of the operator that slots are added to."""
    extent = Extent(fewest, fewest + more)
    slots = np.unique(np.round(np.geomspace(fewest, 1e6, 40)))
    curves = log_growth(law, shapes_of(law, extent), slots, extent)
    assert np.isfinite(curves).all()
    np.testing.assert_allclose(curves[:, 0], 0.0, atol=1e-9)
    assert (np.diff(curves) >= -1e-9).all()
    assert (curves <= np.log(slots - (fewest - 1)) + 1e-9).all()


@pytest.mark.parametrize("law", ["linear", "log", "sqrt"])
def test_a_laws_shapes_are_spread_evenly_in_what_measurements_see(law):
    at_most = np.sort(log_growth(law, shapes_of(law, EXTENT), np.array([48.0]), EXTENT)[:, 0])
    np.testing.assert_allclose(np.diff(at_most), np.diff(at_most)[0], rtol=1e-6)


def test_below_the_fewest_slots_the_mst_is_proportional():
    for law, slots in itertools.product(LAWS, (1.0, 3.0)):
        shape = shapes_of(law, EXTENT)[:1]
        assert np.exp(log_growth(law, shape, np.array([slots]), EXTENT)) == pytest.approx(slots / 9)
