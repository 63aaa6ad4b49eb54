"""Weights of candidates: against exact integration, and what they do when they cannot or can be separated."""

import numpy as np
import pytest

from models.capacity.growth.stacking import stacking_moments


def test_two_candidates_agree_with_exact_integration():
    """One observation, densities 3 and 1: E[w] under Beta(1/2, 1/2) is known in closed form, 7/12... by its moments."""
    weights = stacking_moments(np.log([[3.0, 1.0]])).mean
    # E[w (3 w + (1 - w))] / E[3 w + 1 - w] with E[w] = 1/2 and E[w^2] = 3/8.
    assert weights == pytest.approx([(2 * 3 / 8 + 1 / 2) / 2, 1 - (2 * 3 / 8 + 1 / 2) / 2], abs=0.005)


def test_shares_beforehand_are_kept_where_nothing_is_learned():
    weights = stacking_moments(np.zeros((5, 3)), np.array([0.5, 0.3, 0.2])).mean
    assert weights == pytest.approx([0.5, 0.3, 0.2], abs=0.01)


def test_candidates_that_predict_alike_share_the_weight():
    assert stacking_moments(np.zeros((20, 4))).mean == pytest.approx(np.full(4, 0.25), abs=0.01)


def test_the_better_one_takes_over_as_observations_come():
    better = np.array([0.0, -0.5, -0.5])
    shares = [stacking_moments(np.tile(better, (n, 1))).mean[0] for n in (1, 4, 16, 64)]
    assert shares == sorted(shares)
    assert shares[0] < 0.5 < 0.9 < shares[-1]


def test_a_mixture_is_kept_where_each_predicts_another_part():
    halves = np.log(np.array([[1.0, 0.01]] * 10 + [[0.01, 1.0]] * 10))
    assert stacking_moments(halves).mean == pytest.approx([0.5, 0.5], abs=0.02)


def test_one_more_observation_does_not_overturn_the_weights():
    """Where maximising would move all of the weight from one candidate to the other."""
    first = np.tile([0.0, -0.01], (8, 1))
    before = stacking_moments(first).mean
    after = stacking_moments(np.vstack([first, [-0.2, 0.0]])).mean
    assert np.abs(after - before).max() < 0.15


def test_weights_sum_to_one_for_densities_that_underflow():
    weights = stacking_moments(np.array([[-2000.0, -1000.0, -3000.0]] * 3)).mean
    assert weights.sum() == pytest.approx(1.0)
    assert weights[1] == pytest.approx((1 / 3 + 3) / (1 + 3), abs=0.01)  # E[w^4] / E[w^3] under Beta(1/3, 2/3)


def test_one_more_observation_follows_from_the_moments():
    rng = np.random.default_rng(0)
    before, more = rng.normal(size=(6, 3)), rng.normal(size=(2, 3))
    found = stacking_moments(before).after(np.exp(more))
    for weights, row in zip(found, more, strict=True):
        assert weights == pytest.approx(stacking_moments(np.vstack([before, row])).mean, abs=1e-12)
        assert weights.sum() == pytest.approx(1)


def test_without_an_observation_the_weights_are_those_of_the_others():
    densities = np.random.default_rng(1).normal(size=(6, 3))
    left_out = stacking_moments(densities).left_out
    assert left_out.shape == (6, 3)
    for i in range(6):
        assert left_out[i] == pytest.approx(stacking_moments(np.delete(densities, i, axis=0)).mean, rel=1e-9)
