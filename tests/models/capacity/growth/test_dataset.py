"""The observations as arrays, and whether they show growth."""

from types import SimpleNamespace

import numpy as np
import pytest

from models.capacity.growth.dataset import Dataset, shows_growth
from models.capacity.observation import Observation
from models.errors import InvalidInput


def test_a_data_set_is_made_of_observations_and_cannot_be_written_to():
    observation = Observation(run="r", task_slots=9, memory_mb=8192, parallelism={"map": 9}, mst=5e4)
    data = Dataset.of([observation, SimpleNamespace(task_slots=10, memory_mb=8192, mst=6e4)])
    assert (data.task_slots.tolist(), data.mst.tolist()) == ([9, 10], [5e4, 6e4])
    assert (data.fewest_slots, data.most_slots) == (9, 10)
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


@pytest.mark.parametrize(
    ("slots", "shows"),
    [
        ([4, 4, 4, 4, 16, 32], False),  # one number of slots in the lower half
        ([4, 8, 16, 32], False),  # two observations in the lower half
        ([9, 10, 11, 35, 46, 48], False),  # a factor of 1.2
        ([9, 12, 18, 35, 46, 48], True),  # a factor of 2
        ([10, 11, 12, 13, 14], True),  # the root of what all span is 1.18, and the lower half spans 1.2
    ],
)
def test_the_lower_half_must_span_enough_slots_to_show_growth(slots, shows):
    ones = np.ones(len(slots))
    assert shows_growth(Dataset(ones, np.array(slots, dtype=float), ones)) is shows
