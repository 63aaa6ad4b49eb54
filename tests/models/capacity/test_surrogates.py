"""Surrogates against the paper's figures, textbook formulas and other implementations."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import skops.io
from hypothesis import given
from hypothesis import strategies as st
from models.capacity.surrogates import (
    SURROGATES,
    Dataset,
    Surrogate,
    extrapolation_rmse,
    extrapolation_split,
    features,
    fit,
    loocv_predictions,
    loocv_rmse,
    prediction_interval,
    to_estimator,
)
from scipy.stats import t as student_t

from models.capacity.observation import Observation
from models.errors import InvalidInput

TRUTH = {
    "linear": Surrogate(name="linear", memory=2.0, slots=5e4, intercept=1e4),
    "log": Surrogate(name="log", memory=3e4, slots=5e5, intercept=-2e5),
    "sqrt": Surrogate(name="sqrt", memory=50.0, slots=2e5, intercept=-1e5),
}


def measured(truth: Surrogate, noise: float = 0.0, n: int = 12, memories=(8192.0, 16384.0, 65536.0), seed: int = 0):
    """Observations of a known model, with normal noise."""
    rng = np.random.default_rng(seed)
    memory, slots = np.resize(np.array(memories), n), np.linspace(4, 48, n).round()
    return Dataset(memory, slots, truth.predict(memory, slots) + noise * rng.normal(size=n))


def design(name: str, data: Dataset) -> np.ndarray:
    """[phi(M), phi(Pi), 1], (n, 3)."""
    return np.column_stack([*features(name, data.memory_mb, data.task_slots), np.ones(len(data))])


def test_q5_has_the_coefficients_of_table_4(published):
    # Table 4 cuts the digits off: a -7.6E3, b 5.7E5, c -1.2E6.
    log = fit("log", published("q5", 14))
    assert np.trunc(log.memory / 1e2) == -76
    assert np.trunc(log.slots / 1e4) == 57
    assert np.trunc(log.intercept / 1e5) == -12


def test_q1_has_the_slope_of_table_4(published):
    # b 9.9E5. The released rows do not give the printed a and c, with any number of them, but they give Table 3.
    assert np.trunc(fit("linear", published("q1", 10)).slots / 1e4) == 99


@pytest.mark.parametrize("name", SURROGATES)
def test_a_known_model_is_found_again(name):
    found = fit(name, measured(TRUTH[name]))
    assert found.memory == pytest.approx(TRUTH[name].memory, rel=1e-8)
    assert found.slots == pytest.approx(TRUTH[name].slots, rel=1e-8)
    assert found.intercept == pytest.approx(TRUTH[name].intercept, rel=1e-8)


@pytest.mark.parametrize("name", SURROGATES)
def test_constant_memory_gets_no_coefficient(name):
    data = measured(TRUTH[name], memories=(30_000.1,))
    found = fit(name, data)
    assert found.memory == 0.0
    assert found.predict(data.memory_mb, data.task_slots) == pytest.approx(data.mst)


@pytest.mark.parametrize("name", SURROGATES)
def test_a_single_observation_is_its_own_prediction(name):
    found = fit(name, Dataset(np.array([4096.0]), np.array([9.0]), np.array([5e4])))
    assert (found.memory, found.slots, found.intercept) == (0.0, 0.0, 5e4)


@given(
    st.sampled_from(SURROGATES),
    st.lists(st.tuples(st.integers(1, 64), st.integers(1, 2000), st.floats(1e3, 1e8)), min_size=1, max_size=15),
)
def test_any_data_gives_finite_least_squares(name, rows):
    memory, slots, mst = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    data = Dataset(memory * 1024, slots, mst)
    found = fit(name, data)
    reference, *_ = np.linalg.lstsq(design(name, data), data.mst, rcond=None)
    rss = np.sum((found.predict(data.memory_mb, data.task_slots) - data.mst) ** 2)
    least = np.sum((design(name, data) @ reference - data.mst) ** 2)
    assert np.isfinite([found.memory, found.slots, found.intercept]).all()
    assert np.sqrt(rss) <= np.sqrt(least) * (1 + 1e-6) + 1e-6 * data.mst.max()


@pytest.mark.parametrize("name", SURROGATES)
@pytest.mark.parametrize(("query", "rows"), [("q5", 14), ("q5", 22), ("q1", 30)])
def test_refitting_gives_the_residuals_of_the_hat_matrix(published, name, query, rows):
    # e_i / (1 - h_ii), the closed form of leave-one-out for least squares.
    data = published(query, rows)
    x = design(name, data)
    hat = x @ np.linalg.pinv(x)
    left_out = (data.mst - hat @ data.mst) / (1 - np.diag(hat))
    assert data.mst - loocv_predictions(name, data) == pytest.approx(left_out, rel=1e-6)
    assert loocv_rmse(name, data) == pytest.approx(np.sqrt(np.mean(left_out**2)), rel=1e-6)


def test_loocv_survives_a_point_that_alone_shows_the_effect_of_memory():
    # Its leverage is 1: the hat matrix would divide by zero.
    data = Dataset(np.array([8192.0] * 4 + [65536.0]), np.array([4, 8, 16, 32, 16.0]), np.array([4, 8, 16, 32, 18.0]))
    assert loocv_predictions("linear", data)[4] == pytest.approx(16.0)


def test_loocv_needs_two_observations():
    with pytest.raises(InvalidInput, match="at least 2 observations, but got 1"):
        loocv_rmse("log", measured(TRUTH["log"], n=1))


def test_the_split_orders_ties_by_memory_and_then_by_measurement():
    slots = np.array([8, 4, 8, 8, 4, 16, 8.0])
    memory = np.array([2, 2, 1, 1, 1, 1, 1.0])
    data = Dataset(memory, slots, np.arange(1.0, 8.0))
    lower, upper = extrapolation_split(data) or pytest.fail("there is a split")
    assert lower.mst.tolist() == [5, 2, 3, 4]  # of seven, the middle one trains
    assert upper.mst.tolist() == [7, 1, 6]


@pytest.mark.parametrize("slots", [[4, 4, 4, 4, 16, 32], [4, 8, 16], [4, 8, 16, 32]])
def test_there_is_no_split_where_the_lower_half_cannot_show_the_effect_of_slots(slots):
    data = Dataset(np.full(len(slots), 8192.0), np.array(slots, dtype=float), np.array(slots, dtype=float))
    assert extrapolation_split(data) is None
    assert extrapolation_rmse("linear", data) is None


def test_only_the_true_model_extrapolates_without_error():
    for true, truth in TRUTH.items():
        errors = {name: extrapolation_rmse(name, measured(truth)) for name in SURROGATES}
        assert errors.pop(true) == pytest.approx(0.0, abs=1e-3)
        assert all(error is not None and error > 1e3 for error in errors.values())


def test_the_prediction_interval_is_the_textbook_one(published):
    data = published("q5", 14)
    x, x0 = design("log", data), np.array([np.log1p(65536), np.log1p(1079), 1.0])
    inverse = np.linalg.inv(x.T @ x)
    beta = inverse @ x.T @ data.mst
    s2 = np.sum((data.mst - x @ beta) ** 2) / (14 - 3)
    width = student_t.ppf(0.975, 11) * np.sqrt(s2 * (1 + x0 @ inverse @ x0))
    interval = prediction_interval("log", data, 65536, 1079)
    assert interval.value == pytest.approx(x0 @ beta, rel=1e-6)
    assert interval.high - interval.value == pytest.approx(width, rel=1e-5)
    assert interval.value - interval.low == pytest.approx(width, rel=1e-5)


def test_the_prediction_interval_holds_its_probability():
    truth, inside = TRUTH["sqrt"], 0
    true_mst = float(truth.predict(65536, 200))
    for seed in range(400):
        interval = prediction_interval("sqrt", measured(truth, noise=4e4, seed=seed), 65536, 200, probability=0.8)
        further = true_mst + 4e4 * np.random.default_rng(seed + 10_000).normal()
        inside += interval.low <= further <= interval.high
    assert 0.74 < inside / 400 < 0.86


def test_the_interval_of_a_constant_memory_has_one_coefficient_less():
    data = measured(TRUTH["log"], noise=1e4, n=3, memories=(8192.0,))
    assert prediction_interval("log", data, 8192, 100).high > 0
    with pytest.raises(InvalidInput, match="there are 3 for 3"):
        prediction_interval("log", measured(TRUTH["log"], noise=1e4, n=3), 8192, 100)


def test_an_interval_below_zero_is_cut_off():
    interval = prediction_interval("log", measured(TRUTH["log"], noise=5e5), 8192, 1)
    assert interval.low == 0.0 < interval.high


@pytest.mark.parametrize("name", SURROGATES)
def test_the_estimator_predicts_the_same_and_loads_without_trusted_types(name, recwarn):
    truth = TRUTH[name]
    table = pd.DataFrame({"memory_mb": [8192.0, 65536.0], "task_slots": [48, 1079]})
    saved = skops.io.dumps(to_estimator(truth))
    assert skops.io.get_untrusted_types(data=saved) == []
    loaded = skops.io.loads(saved, trusted=[])
    assert loaded.predict(table) == pytest.approx(truth.predict(table["memory_mb"], table["task_slots"]))
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(table.rename(columns={"memory_mb": "memory"}))
    assert not [w for w in recwarn if "feature names" in str(w.message)]


def test_a_data_set_is_made_of_observations_and_cannot_be_written_to():
    observation = Observation(run="r", task_slots=9, memory_mb=8192, parallelism={"map": 9}, mst=5e4)
    data = Dataset.of([observation, SimpleNamespace(task_slots=10, memory_mb=8192, mst=6e4)])
    assert (data.task_slots.tolist(), data.mst.tolist()) == ([9, 10], [5e4, 6e4])
    with pytest.raises(ValueError, match="read-only"):
        data.mst[0] = 1.0


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([], [], []), "at least 1"),
        (([1.0], [1.0, 2.0], [1.0]), "same length"),
        (([1.0], [0.0], [1.0]), "task_slots must be finite and above 0"),
        (([1.0], [1.0], [float("nan")]), "mst must be finite"),
    ],
)
def test_a_data_set_refuses_what_cannot_be_fitted(columns, message):
    with pytest.raises(InvalidInput, match=message):
        Dataset(*(np.array(c, dtype=float) for c in columns))


def test_an_unknown_surrogate_is_refused():
    with pytest.raises(InvalidInput, match="one of linear, log, sqrt, but got 'cubic'"):
        fit("cubic", measured(TRUTH["log"]))
