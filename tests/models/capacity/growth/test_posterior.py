"""The posterior on a grid: against brute force, repeated fits, and noise of known size."""

import numpy as np
import pytest
from scipy.stats import t as student_t

from models.capacity.growth import posterior as module
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.posterior import posterior, student_log_density, student_probability
from models.capacity.growth.shapes import Extent, log_growth, shapes_of

SLOTS = np.array([4, 4, 8, 16, 24, 48, 48, 48.0])
EXTENT = Extent(4, 48)


def noisy(seed: int, noise: float = 0.06, memory_mb: float | np.ndarray = 8192.0, slots: np.ndarray = SLOTS) -> Dataset:
    """Linear growth of 1e4 records/s a slot."""
    errors = noise * np.random.default_rng(seed).standard_t(4, len(slots))
    return Dataset(np.broadcast_to(memory_mb, slots.shape), slots, 1e4 * slots * np.exp(errors))


def linear(data: Dataset) -> module.Posterior:
    return posterior(data, log_growth("linear", shapes_of("linear", EXTENT), data.task_slots, EXTENT))


def expected_log_mst(found: module.Posterior, slots: float) -> tuple[float, float]:
    """Mean and standard deviation."""
    growth = log_growth("linear", shapes_of("linear", EXTENT), np.array([slots]), EXTENT)[found.shape, 0]
    values = found.level + growth
    mean = float(found.weight @ values)
    return mean, float(np.sqrt(found.weight @ (values - mean) ** 2))


def test_the_density_is_students():
    x = np.linspace(-30, 30, 7)
    np.testing.assert_allclose(student_log_density(x), student_t.logpdf(x, 4), rtol=1e-9)
    np.testing.assert_allclose(student_probability(x), student_t.cdf(x, 4), atol=1e-12)


def test_it_finds_what_the_data_were_made_from():
    """Within its own uncertainty, over many data sets."""
    deviations = []
    for seed in range(40):
        mean, spread = expected_log_mst(linear(noisy(seed)), 48.0)
        deviations.append((mean - np.log(48e4)) / spread)
    assert abs(np.mean(deviations)) < 0.5
    assert 0.6 < np.std(deviations) < 1.5


def test_leaving_one_out_on_the_grid_is_fitting_the_others():
    data = noisy(3)
    at_once = linear(data)
    for i in (0, 3, 7):
        others = linear(data.rows(np.arange(len(data)) != i))
        growth = log_growth("linear", shapes_of("linear", EXTENT), data.task_slots[i : i + 1], EXTENT)
        ahead = np.log(data.mst[i]) - others.level - growth[others.shape, 0]
        density = np.log(others.weight @ np.exp(student_log_density(ahead / others.noise) - np.log(others.noise)))
        assert at_once.log_density[i] == pytest.approx(density, abs=0.08)
        mean = float(others.weight @ (others.level + growth[others.shape, 0]))
        assert at_once.left_out[i] == pytest.approx(mean, abs=0.02)


def test_an_outlier_costs_density_but_does_not_move_the_law():
    data = noisy(5)
    slow = Dataset(data.memory_mb, data.task_slots, np.where(np.arange(8) == 6, data.mst / 6, data.mst))
    plain, disturbed = linear(data), linear(slow)
    assert expected_log_mst(disturbed, 480.0)[0] == pytest.approx(expected_log_mst(plain, 480.0)[0], abs=0.1)
    assert disturbed.log_density[6] < plain.log_density[6] - 5


def test_repeats_show_the_noise():
    quiet = np.average(linear(noisy(1, noise=0.02)).noise, weights=linear(noisy(1, noise=0.02)).weight)
    loud = np.average(linear(noisy(1, noise=0.2)).noise, weights=linear(noisy(1, noise=0.2)).weight)
    assert quiet < 0.05 < 0.1 < loud


def test_the_effect_of_memory_is_found_where_memory_varies():
    memory = np.resize([8192.0, 65536.0], len(SLOTS))
    data = noisy(2, noise=0.02, memory_mb=memory)
    grown = Dataset(memory, SLOTS, data.mst * (memory / 8192) ** 0.3)
    found = linear(grown)
    assert float(found.weight @ found.memory_effect) == pytest.approx(0.3, abs=0.04)


def test_an_effect_of_memory_that_was_not_measured_is_unknown():
    found = linear(noisy(2))
    assert float(found.weight @ found.memory_effect) == pytest.approx(0.0, abs=1e-9)
    assert np.sqrt(found.weight @ found.memory_effect**2) == pytest.approx(module.MEMORY_EFFECT, rel=0.15)


def test_a_level_known_beforehand_counts():
    data = noisy(4).rows([0, 2])
    growth = log_growth("linear", shapes_of("linear", EXTENT), data.task_slots, EXTENT)
    pulled = posterior(data, growth, level=(np.log(8e4), 0.01))
    free = posterior(data, growth)
    assert pulled.weight @ pulled.level > free.weight @ free.level + 0.05
