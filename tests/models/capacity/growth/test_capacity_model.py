"""Intervals and predictions over several laws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from known_answers.capacity_laws import one_curve
from models.capacity.growth.capacity_model import CapacityModel, Weighted
from models.capacity.growth.regressions import fit_regression
from models.capacity.selection import select


def two_laws() -> CapacityModel:
    """Half sure of 480,000 records/s with 48 slots, half sure of a tenth of that; with a noise of next to nothing."""
    high, low = (
        one_curve(noise=(1e-6,)),
        one_curve(noise=(1e-6,), level=(np.log(4e3),), law="even", shape=((0.0, 0.0),)),
    )
    return CapacityModel(components=(Weighted(weight=0.5, predicts=high), Weighted(weight=0.5, predicts=low)))


def test_an_interval_covers_all_laws():
    interval = two_laws().interval(8192.0, 4)
    assert (interval.low, interval.high) == pytest.approx((4e3, 4e4), rel=1e-4)
    assert two_laws().sustains(8192.0, 4, 1e4) == pytest.approx([0.5])


@settings(max_examples=25)
@given(st.integers(4, 100_000), st.floats(0.01, 0.99))
def test_a_quantile_is_where_the_probability_is(slots, probability):
    model = CapacityModel.of(one_curve())
    quantile = model.quantiles(8192.0, slots, [probability])[0, 0]
    assert model.sustains(8192.0, slots, quantile)[0] == pytest.approx(1 - probability, abs=1e-6)


def test_quantiles_of_a_regression_are_those_of_its_band(published):
    log = fit_regression("log", published("q5", 14))
    low, middle, high = CapacityModel.of(log).quantiles(65536, 1079, (0.025, 0.5, 0.975))[0]
    assert middle == pytest.approx(float(log.predict(65536, 1079)), rel=1e-9)
    half = 2.200985 * float(log.error(65536, 1079))  # Student-t, 11 degrees of freedom
    assert (low, high) == pytest.approx((middle - half, middle + half), rel=1e-5)


def test_a_quantile_below_zero_is_cut_off(published):
    log = CapacityModel.of(fit_regression("log", published("q5", 14)))
    assert log.quantiles(65536, 1, [0.025])[0, 0] == 0.0


def test_the_probability_of_sustaining_never_falls_with_the_slots(published):
    for query in ("q1", "q5"):
        model = select(published(query, 12)).model
        sure = model.sustains(65536, np.geomspace(9, 1e6, 60), 4e6)
        assert (np.diff(sure) >= -1e-9).all()


def test_the_central_prediction_is_the_geometric_mean():
    assert two_laws().predict(8192.0, 4) == pytest.approx(np.sqrt(4e3 * 4e4))
    assert two_laws().predict([8192.0, 8192.0], [4, 48]).shape == (2,)


def test_it_is_stored_and_read_without_loss(published):
    model = select(published("q5", 14)).model
    assert CapacityModel.model_validate_json(model.model_dump_json()) == model
    assert len(model.model_dump_json()) < 100_000


def test_weights_that_do_not_sum_to_one_are_refused():
    with pytest.raises(ValueError, match="must sum to 1"):
        CapacityModel(components=(Weighted(weight=0.5, predicts=one_curve()),))
