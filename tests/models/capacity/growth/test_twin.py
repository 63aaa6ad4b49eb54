"""A twin corrected by measurements, and weighed with the growth laws."""

import numpy as np
import pytest

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.twin import LEVEL, MEAN_TILT, TwinCurve, fit_twin
from models.capacity.selection import select

TWIN_SLOTS = tuple(float(n) for n in (4, 8, 16, 32, 48, 100, 200, 500, 1000))
SLOTS = np.array([4, 8, 16, 16, 32, 48, 48.0])


def plateau(slots: np.ndarray) -> np.ndarray:
    """Hot keys cap the job from 40 slots on, and only many tasks spread them: no growth law has this shape."""
    return 2e4 * np.minimum(slots, 40) * np.maximum(1.0, slots / 300) ** 0.8


def twin_of(mst: np.ndarray, memory_mb: tuple[float, ...] = (8192.0,)) -> TwinCurve:
    rows = tuple(tuple(map(float, mst * (m / memory_mb[0]) ** 0.2)) for m in memory_mb)
    return TwinCurve(memory_mb=memory_mb, task_slots=TWIN_SLOTS, mst=rows)


def measured(factor: float, tilt: float = 0.0, noise: float = 0.04, seed: int = 0) -> Dataset:
    errors = noise * np.random.default_rng(seed).standard_t(4, len(SLOTS))
    mst = factor * plateau(SLOTS) * (SLOTS / 48) ** tilt * np.exp(errors)
    return Dataset(np.full(len(SLOTS), 8192.0), SLOTS, mst)


def together(parts: list[Dataset]) -> Dataset:
    memory, slots, mst = (np.concatenate([getattr(d, c) for d in parts]) for c in ("memory_mb", "task_slots", "mst"))
    return Dataset(memory, slots, mst)


PLATEAU = twin_of(plateau(np.array(TWIN_SLOTS)))


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.4])
def test_the_measurements_say_by_which_factor_the_twin_is_wrong(factor):
    for seed in range(4):
        _, curves = fit_twin(PLATEAU, measured(factor, seed=seed))
        at_48 = np.exp(curves.log_mst(8192.0, np.array([48.0]))).mean()
        assert at_48 == pytest.approx(factor * plateau(np.array([48.0]))[0], rel=0.08)


def test_a_residual_that_changes_with_the_slots_counts_beside_what_is_expected_of_it():
    # Seven precise measurements know the tilt about as well as the prior does.
    _, curves = fit_twin(PLATEAU, measured(1.0, tilt=0.02, noise=0.001))
    assert MEAN_TILT + 0.005 < np.mean(curves.shape) < 0.02


def test_where_nothing_was_measured_the_residual_is_a_constant_near_one():
    one = Dataset(np.full(2, 8192.0), np.array([48.0, 48.0]), plateau(np.array([48.0, 48.0])))
    found, curves = fit_twin(PLATEAU, one)
    assert np.mean(curves.shape) == pytest.approx(MEAN_TILT, abs=0.002)
    assert found.weight @ found.level == pytest.approx(0.0, abs=LEVEL / 3)


@pytest.mark.slow
def test_a_right_twin_takes_the_weight_and_moves_the_answer_to_the_truth():
    """The truth at 1,000 slots, which growth laws fitted below 48 slots cannot know."""
    truth = 1.1 * plateau(np.array([1000.0]))[0]
    for seed in range(3):
        data = measured(1.1, seed=seed)
        alone, with_twin = select(data).model, select(data, twin=PLATEAU).model
        band = with_twin.interval(8192.0, 1000)
        assert with_twin.weights["twin"] > 0.5
        assert band.value == pytest.approx(truth, rel=0.3)
        assert band.low < truth < band.high
        assert alone.interval(8192.0, 1000).value > 2 * truth


def test_more_measurements_beside_a_right_twin_narrow_the_answer():
    often = [measured(1.1, noise=0.02, seed=seed) for seed in range(4)]
    widths = []
    for data in (often[0], together(often)):
        band = select(data, twin=PLATEAU).model.interval(8192.0, 1000, probability=0.8)
        widths.append(np.log(band.high / band.low))
    assert widths[1] < 0.95 * widths[0]  # What is left is the drift, of which small sizes say nothing.


def test_a_wrong_twin_loses_its_weight():
    """One that expects the MST of linear growth, which the measurements contradict."""
    wrong = twin_of(2e4 * np.array(TWIN_SLOTS) ** 1.6)
    # The weights beforehand count as one observation, of which the twin has most: one of eight, and then of twenty-nine.
    assert select(measured(1.0), twin=wrong).model.weights["twin"] < 1.1 / 8
    assert (
        select(together([measured(1.0, seed=seed) for seed in range(4)]), twin=wrong).model.weights["twin"] < 1.1 / 29
    )


def test_it_interpolates_in_logarithms_and_goes_on_beyond_its_ends():
    curve = twin_of(1e4 * np.array(TWIN_SLOTS), memory_mb=(8192.0, 32768.0))
    at = np.array([4.0, 6.0, 700.0, 5000.0])
    np.testing.assert_allclose(np.exp(curve.log_mst(8192.0, at)), 1e4 * at)
    np.testing.assert_allclose(np.exp(curve.log_mst(16384.0, at)), 1e4 * at * 2**0.2)
    np.testing.assert_allclose(np.exp(curve.log_mst(65536.0, at)), 1e4 * at * 4**0.2)
    assert np.exp(curve.log_mst(8192.0, np.array([2.0]))) == pytest.approx(2e4)


def test_a_curve_that_falls_is_taken_as_flat_at_the_mean_of_what_falls():
    falls = twin_of(np.array([1, 2, 4, 5, 4, 4, 4, 4, 4.0]) * 1e5)
    assert np.exp(falls.log_mst(8192.0, np.array([48.0, 1000.0]))) == pytest.approx([(5 * 4**5) ** (1 / 6) * 1e5] * 2)


def test_a_model_with_a_twin_is_stored_and_read_without_loss():
    model = select(measured(1.0), twin=PLATEAU).model
    assert CapacityModel.model_validate_json(model.model_dump_json()) == model


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task_slots": (8.0, 4.0)}, "task_slots must ascend"),
        ({"mst": ((1.0,),)}, "1 rows of 2 numbers"),
    ],
)
def test_a_curve_that_is_no_table_is_refused(fields, message):
    good = {"memory_mb": (8192.0,), "task_slots": (4.0, 8.0), "mst": ((1.0, 2.0),)}
    with pytest.raises(ValueError, match=message):
        TwinCurve.model_validate(good | fields)
