"""Costs of windows and sizes of state, by numbers that can be checked by hand."""

import numpy as np
import pytest

from models.capacity.twin.state import UNSEEN_FIRE_SHARE, fire_share, state_bytes


def test_the_cost_of_firing_is_separated_from_that_of_records_in() -> None:
    # 2 us a record in, 6 us a record fired: 3 * 1000 * 2 us against 300 * 6 us, so 1.8 of 7.8 ms.
    into, out = np.array([1000.0, 1000.0, 1000.0]), np.array([0.0, 100.0, 200.0])
    assert fire_share(2e-6 * into + 6e-6 * out, into, out) == pytest.approx(1.8 / 7.8)


def test_what_costs_nothing_to_fire_has_no_share() -> None:
    into, out = np.array([1000.0, 2000.0, 1000.0]), np.array([0.0, 100.0, 200.0])
    assert fire_share(2e-6 * into, into, out) == pytest.approx(0.0, abs=1e-9)


def test_records_in_one_proportion_separate_nothing() -> None:
    into = np.array([1000.0, 2000.0, 3000.0])
    assert fire_share(5e-6 * into, into, 0.1 * into) == UNSEEN_FIRE_SHARE
    assert fire_share(5e-6 * into, into, 0 * into) == 0.0
    assert fire_share(np.zeros(0), np.zeros(0), np.zeros(0)) == UNSEEN_FIRE_SHARE


def test_state_that_fits_half_has_twice_the_cache() -> None:
    assert state_bytes(0.5, 100.0, 2.0) == 100.0
    assert state_bytes(1.0, 100.0, 2.0) == 0.0
    assert state_bytes(0.0, 100.0, 2.0) == 0.0
