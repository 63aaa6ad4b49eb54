"""StreamBed's regressions against the paper's figures, textbook formulas and other implementations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t as student_t

from known_answers.capacity_laws import regression
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.regressions import (
    REGRESSIONS,
    Regression,
    features,
    fit_regression,
    loocv_predictions,
    loocv_rmse,
)
from models.errors import InvalidInput

TRUTH = {
    "linear": regression("linear", 2.0, 5e4, 1e4),
    "log": regression("log", 3e4, 5e5, -2e5),
    "sqrt": regression("sqrt", 50.0, 2e5, -1e5),
}


def measured(truth: Regression, noise: float = 0.0, n: int = 12, memories=(8192.0, 16384.0, 65536.0), seed: int = 0):
    """Observations of a known model, with normal noise."""
    rng = np.random.default_rng(seed)
    memory, slots = np.resize(np.array(memories), n), np.linspace(4, 48, n).round()
    return Dataset(memory, slots, truth.predict(memory, slots) + noise * rng.normal(size=n))


def design(law: str, data: Dataset) -> np.ndarray:
    """[phi(M), phi(Pi), 1], (n, 3)."""
    return np.column_stack([*features(law, data.memory_mb, data.task_slots), np.ones(len(data))])


def test_q5_has_the_coefficients_of_table_4(published):
    # Table 4 cuts the digits off: a -7.6E3, b 5.7E5, c -1.2E6.
    log = fit_regression("log", published("q5", 14))
    assert np.trunc(log.memory / 1e2) == -76
    assert np.trunc(log.slots / 1e4) == 57
    assert np.trunc(log.intercept / 1e5) == -12


def test_q1_has_the_slope_of_table_4(published):
    # b 9.9E5. The released rows do not give the printed a and c, with any number of them, but they give Table 3.
    assert np.trunc(fit_regression("linear", published("q1", 10)).slots / 1e4) == 99


@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_known_model_is_found_again(name):
    found = fit_regression(name, measured(TRUTH[name]))
    assert found.memory == pytest.approx(TRUTH[name].memory, rel=1e-8)
    assert found.slots == pytest.approx(TRUTH[name].slots, rel=1e-8)
    assert found.intercept == pytest.approx(TRUTH[name].intercept, rel=1e-8)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_constant_memory_gets_no_coefficient(name):
    data = measured(TRUTH[name], memories=(30_000.1,))
    found = fit_regression(name, data)
    assert found.memory == 0.0
    assert found.predict(data.memory_mb, data.task_slots) == pytest.approx(data.mst)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_single_observation_is_its_own_prediction(name):
    found = fit_regression(name, Dataset(np.array([4096.0]), np.array([9.0]), np.array([5e4])))
    assert (found.memory, found.slots, found.intercept) == (0.0, 0.0, 5e4)


@given(
    st.sampled_from(REGRESSIONS),
    st.lists(st.tuples(st.integers(1, 64), st.integers(1, 2000), st.floats(1e3, 1e8)), min_size=1, max_size=15),
)
def test_any_data_gives_finite_least_squares(name, rows):
    memory, slots, mst = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    data = Dataset(memory * 1024, slots, mst)
    found = fit_regression(name, data)
    reference, *_ = np.linalg.lstsq(design(name, data), data.mst, rcond=None)
    rss = np.sum((found.predict(data.memory_mb, data.task_slots) - data.mst) ** 2)
    least = np.sum((design(name, data) @ reference - data.mst) ** 2)
    assert np.isfinite([found.memory, found.slots, found.intercept]).all()
    assert np.sqrt(rss) <= np.sqrt(least) * (1 + 1e-6) + 1e-6 * data.mst.max()


@pytest.mark.parametrize("name", REGRESSIONS)
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


def test_the_prediction_band_is_the_textbook_one(published):
    data = published("q5", 14)
    x, x0 = design("log", data), np.array([np.log1p(65536), np.log1p(1079), 1.0])
    inverse = np.linalg.inv(x.T @ x)
    beta = inverse @ x.T @ data.mst
    s2 = np.sum((data.mst - x @ beta) ** 2) / (14 - 3)
    error = np.sqrt(s2 * (1 + x0 @ inverse @ x0))
    log = fit_regression("log", data)
    assert log.predict(65536, 1079) == pytest.approx(x0 @ beta, rel=1e-6)
    assert log.error(65536, 1079) == pytest.approx(error, rel=1e-5)
    sustained = log.sustained(65536, np.array([1079.0]))
    for sigmas in (-2.0, 0.0, 1.0):
        assert sustained(np.array(x0 @ beta + sigmas * error)) == pytest.approx([student_t.sf(sigmas, 11)], rel=1e-4)


def test_the_prediction_band_holds_its_probability():
    truth, inside = TRUTH["sqrt"], 0
    true_mst = float(truth.predict(65536, 200))
    for seed in range(400):
        fitted = fit_regression("sqrt", measured(truth, noise=4e4, seed=seed))
        further = true_mst + 4e4 * np.random.default_rng(seed + 10_000).normal()
        sure = fitted.sustained(65536, np.array([200.0]))(np.array(further))[0]
        inside += 0.1 <= sure <= 0.9
    assert 0.74 < inside / 400 < 0.86


def test_the_band_of_a_constant_memory_has_one_coefficient_less():
    data = measured(TRUTH["log"], noise=1e4, n=3, memories=(8192.0,))
    assert fit_regression("log", data).error(8192, 100) > 0
    with pytest.raises(InvalidInput, match="there are 3 for 3"):
        fit_regression("log", measured(TRUTH["log"], noise=1e4, n=3)).error(8192, 100)


def test_an_unknown_regression_is_refused():
    with pytest.raises(InvalidInput, match="a regression must be one of linear, log, sqrt, but got 'cubic'"):
        fit_regression("cubic", measured(TRUTH["log"]))
