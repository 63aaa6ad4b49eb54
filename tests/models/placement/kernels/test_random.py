"""Lehmer's generator against its closed form."""

import numpy as np
import pytest

from models.placement.kernels.random import draw


@pytest.mark.parametrize("seed", [1, 2, 2147483646])
def test_numbers_are_powers_of_the_multiplier(seed: int):
    state = np.array([seed])
    drawn = [draw(state, 1000) for _ in range(50)]
    assert drawn == [seed * pow(48271, k, 2147483647) % 2147483647 % 1000 for k in range(1, 51)]
