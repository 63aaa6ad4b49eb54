"""Draws of a law: their number is small, and what they predict is what the posterior does."""

import numpy as np
import pytest
from scipy.special import stdtr
from scipy.stats import t as student_t

from known_answers.capacity_laws import one_curve
from models.capacity.growth.curves import DRAWS, LAW_DRIFT, draw
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.posterior import NU, posterior, reference_memory_mb
from models.capacity.growth.shapes import Extent, log_growth, shapes_of


def test_a_curve_is_its_law():
    curve = one_curve()
    assert np.exp(curve.log_mst(8192.0, np.array([4.0, 48.0, 1000.0]))) == pytest.approx(np.array([[4e4, 48e4, 1e7]]))
    assert np.exp(curve.log_mst(4 * 8192.0, np.array([48.0]))) == pytest.approx(np.array([[96e4]]))


def test_the_drift_counts_beyond_what_was_measured_only():
    curve, straight = one_curve(drift=(0.9,)), one_curve()
    inside, outside = np.array([4.0, 30.0, 48.0]), np.array([480.0])
    np.testing.assert_allclose(curve.log_mst(8192.0, inside), straight.log_mst(8192.0, inside))
    short = straight.log_mst(8192.0, outside) - curve.log_mst(8192.0, outside)
    assert short == pytest.approx(np.array([[0.1 * np.log(10)]]))


def test_the_probability_of_sustaining_is_the_noises():
    curve = one_curve()
    sustained = curve.sustained(8192.0, np.array([48.0]))
    assert sustained(np.array(48e4)) == pytest.approx([0.5])
    assert sustained(np.array(48e4 * np.exp(-0.2))) == pytest.approx([stdtr(NU, 2.0)])


def test_draws_predict_what_the_posterior_does():
    slots = np.array([4, 8, 16, 24, 48, 48.0])
    errors = np.array([0.05, -0.04, 0.02, -0.06, 0.03, -0.01])
    data = Dataset(np.full(6, 8192.0), slots, 1e4 * slots * np.exp(errors))
    extent, shapes = Extent(4, 48), shapes_of("power", Extent(4, 48))
    found = posterior(data, log_growth("power", shapes, slots, extent))
    curves = draw("power", shapes, found, extent, reference_memory_mb(data))
    assert len(curves.level) == DRAWS
    drifts = np.linspace(-3.5, 3.5, 1001)  # Student-t with NU degrees of freedom, cut off
    drift_variance = LAW_DRIFT**2 * np.average(drifts**2, weights=student_t.pdf(drifts, NU))
    for at in (48.0, 480.0):
        drawn = curves.log_mst(8192.0, np.array([at]))[:, 0]
        inside = log_growth("power", shapes, np.array([48.0]), extent)[found.shape, 0]
        there = log_growth("power", shapes, np.array([at]), extent)[found.shape, 0]
        mean = float(found.weight @ (found.level + there))
        spread = found.weight @ (found.level + there - mean) ** 2
        variance = float(spread + drift_variance * found.weight @ (there - inside) ** 2)
        assert drawn.mean() == pytest.approx(mean, abs=0.02)
        assert drawn.std() == pytest.approx(np.sqrt(variance), rel=0.15)


def test_lists_of_different_length_are_refused():
    with pytest.raises(ValueError, match="same length"):
        one_curve(noise=(0.1, 0.2))
