"""How the laws are weighed, and what is answered where that cannot be."""

import numpy as np
import pytest

from models.capacity.growth.dataset import Dataset
from models.capacity.growth.regressions import fit_regression, loocv_rmse
from models.capacity.growth.shapes import LAWS
from models.capacity.selection import select
from models.errors import Infeasible, InvalidInput
from models.plan.parts import Interval

SLOTS = np.array([4, 8, 12, 16, 24, 32, 40, 48.0])
MEMORY = np.resize(np.array([8192.0, 65536.0]), 8)
BRACKETS = {"q1": (65536, 179, 186e6, 208e6), "q5": (65536, 1079, 3.0e6, 4.2e6)}
"""Memory, slots, and what production achieved with them (production_achieved.csv)."""


def noisy(mst: np.ndarray, noise: float = 0.04, seed: int = 0) -> np.ndarray:
    return mst * np.exp(noise * np.random.default_rng(seed).standard_t(4, len(mst)))


@pytest.fixture(scope="module", params=["q1", "q5"])
def bands(published, request) -> tuple[dict[int, Interval], float, float]:
    """Of the MST at the size of production, by the first rows of the search from six on; and what production achieved."""
    memory_mb, slots, low, high = BRACKETS[request.param]
    rows = range(6, len(published(request.param, 100)) + 1)
    return {n: select(published(request.param, n)).model.interval(memory_mb, slots) for n in rows}, low, high


@pytest.mark.slow
def test_bands_of_published_rows_touch_what_production_achieved(bands):
    by_rows, low, high = bands
    assert [n for n, band in by_rows.items() if band.high < low or band.low > high] == []


@pytest.mark.slow
def test_one_more_row_does_not_overturn_the_answer(bands):
    """A winner among three regressions moved it by a factor of nine for q5, and of five for q1."""
    medians = [band.value for band in bands[0].values()]
    assert np.abs(np.diff(np.log(medians))).max() < np.log(2)


def test_weights_sum_to_one_and_every_candidate_is_reported(published):
    selection = select(published("q5", 22))
    assert set(selection.candidates) == set(LAWS)
    assert sum(selection.model.weights.values()) == pytest.approx(1.0)
    assert all(candidate.loocv_rmse > 0 for candidate in selection.candidates.values())
    assert selection.reason.startswith("stacked by how well each growth law predicts the observations left out: ")


def test_a_law_that_the_rows_contradict_loses_its_weight(published):
    weights = {law: c.weight for law, c in select(published("q1", 30)).candidates.items()}
    assert weights["log"] < 0.05
    assert weights["even"] + weights["linear"] + weights["power"] + weights["skewed"] > 0.9


@pytest.mark.parametrize(
    ("law", "mst"),
    [
        ("log", 5e5 * (np.log1p(SLOTS) - 1.2)),
        ("sqrt", 2e5 * (np.sqrt(SLOTS) - 1.3)),
        pytest.param("linear", 1e5 * (SLOTS - 2), marks=pytest.mark.slow),
    ],
)
def test_the_law_that_made_the_data_is_inside_the_interval_tenfold_out(law, mst):
    beyond = {"log": 5e5 * (np.log1p(480) - 1.2), "sqrt": 2e5 * (np.sqrt(480) - 1.3), "linear": 1e5 * 478}[law]
    for seed in range(5):
        band = select(Dataset(np.full(8, 8192.0), SLOTS, noisy(mst, seed=seed))).model.interval(8192.0, 480)
        assert band.low < beyond < band.high


@pytest.mark.slow
def test_more_measurements_narrow_the_interval():
    def mean_width(repeats: int) -> float:
        slots = np.tile(SLOTS, repeats)
        sets = [Dataset(np.full(len(slots), 8192.0), slots, noisy(1e5 * (slots - 2), seed=seed)) for seed in range(4)]
        bands = [select(data).model.interval(8192.0, 480) for data in sets]
        return float(np.mean([np.log(band.high / band.low) for band in bands]))

    once, often = mean_width(1), mean_width(5)
    assert often < 0.9 * once


def test_an_outlier_among_many_rows_neither_stops_nor_moves_the_answer(published):
    """A run of q1 that was six times too slow, with others of its size beside it that were not."""
    data = published("q1", 30)
    slow = np.where(np.arange(30) == 14, data.mst / 6, data.mst)
    plain = select(data).model.interval(65536, 179)
    disturbed = select(Dataset(data.memory_mb, data.task_slots, slow)).model.interval(65536, 179)
    assert 0.6 < disturbed.value / plain.value < 1.6


def test_a_choice_can_be_forced_and_keeps_every_candidate(published):
    data = published("q5", 14)
    free, forced = select(data), select(data, forced="sqrt")
    assert forced.model.regression == fit_regression("sqrt", data)
    assert (forced.model.name, forced.candidates) == ("sqrt", free.candidates)
    assert forced.loocv_rmse == loocv_rmse("sqrt", data)
    assert forced.reason == "sqrt was asked for (LOOCV RMSE 50,055 records/s)."
    skewed = select(data, forced="skewed")
    assert (skewed.model.name, skewed.model.weights, skewed.model.regression) == ("skewed", {"skewed": 1.0}, None)


def test_a_job_whose_mst_falls_is_refused_unless_a_regression_is_forced():
    falling = Dataset(MEMORY, SLOTS, 1e6 - 1e4 * SLOTS)
    with pytest.raises(Infeasible, match=r"MST falls as task slots are added, by .* measure both again"):
        select(falling)
    forced = select(falling, forced="linear")
    assert forced.model.regression is not None and forced.model.regression.slots == pytest.approx(-1e4)
    assert "does not grow with the slots" in forced.reason


@pytest.mark.parametrize("seed", range(5))
def test_noise_around_a_flat_mst_is_no_fall(seed):
    flat = Dataset(MEMORY, SLOTS, noisy(np.full(8, 1e6), noise=0.05, seed=seed))
    band = select(flat).model.interval(8192.0, 48)
    assert band.low < 1e6 < band.high


@pytest.mark.parametrize(
    ("slots", "message"),
    [
        ([4, 8], "at least 3 observations, but got 2; measure more budgets"),
        ([8, 8, 8, 8], "must differ in task slots, but all have 8; measure another number"),
    ],
)
def test_too_little_to_fit_is_refused(slots, message):
    values = np.array(slots, dtype=float)
    with pytest.raises(InvalidInput, match=message):
        select(Dataset(np.full(len(slots), 8192.0), values, values))


def test_three_rows_have_an_answer_and_a_regression_needs_more_than_its_coefficients():
    three = Dataset(np.array([8192.0, 8192.0, 65536.0]), np.array([4, 16, 48.0]), np.array([4e4, 17e4, 45e4]))
    band = select(three).model.interval(8192.0, 480)
    assert band.low < 45e5 < band.high * 1.5
    with pytest.raises(
        InvalidInput, match="more observations than its 3 coefficients, but got 3; measure at least one"
    ):
        select(three, forced="log")


def test_an_unknown_law_cannot_be_forced(published):
    with pytest.raises(InvalidInput, match="one of linear, log, sqrt, power, even, skewed, but got 'cubic'"):
        select(published("q5", 14), forced="cubic")


def test_it_is_deterministic(published):
    data = published("q1", 30)
    assert select(data) == select(data)
