"""A sketch of a stream is that of its parts, merged; and it survives being sent."""

import numpy as np
import pytest

from models.errors import InvalidInput
from models.keys.columns import Integers
from models.keys.sketch import KeyedBy, KeySketch, Measure, check_columns


def sketch_of(keys: np.ndarray, windows: np.ndarray, measure: Measure) -> KeySketch:
    made = KeySketch.empty(measure)
    pairs, counts = np.unique(np.stack([keys, windows]), axis=1, return_counts=True)
    made.add_windows([Integers(np.ascontiguousarray(pairs[0]), 8)], pairs[1], counts)
    values, counts = np.unique(keys, return_counts=True)
    made.add_keys([Integers(values, 8)], counts, lambda places: values[places].tolist())
    return made


@pytest.mark.parametrize("keyed_by", list(KeyedBy))
def test_parts_merge_into_the_whole_and_survive_being_sent(keyed_by: KeyedBy) -> None:
    random = np.random.default_rng(5)
    measure = Measure(keyed_by, groups=4096, window_groups=128, most_keys=100)
    keys, windows = random.zipf(1.4, 5000), random.integers(0, 9, 5000)
    whole = sketch_of(keys, windows, measure)
    merged = KeySketch.empty(measure)
    for part in np.array_split(np.arange(5000), 7):
        sent = sketch_of(keys[part], windows[part], measure).to_bytes()
        merged.merge(KeySketch.from_bytes(sent, measure))
    assert np.array_equal(merged.groups, whole.groups) and merged.records == 5000
    assert merged.sample == whole.sample
    assert merged.windows is not None and whole.windows is not None
    assert {w: c.tolist() for w, c in merged.windows.counts.items()} == {
        w: c.tolist() for w, c in whole.windows.counts.items()
    }
    top = int(np.bincount(keys[keys < 100]).argmax())
    assert merged.heavy.counts[top] <= (keys == top).sum() <= merged.heavy.counts[top] + merged.heavy.error


def test_keys_of_several_columns_survive_being_sent() -> None:
    made = KeySketch.empty(Measure(groups=128))
    column = Integers(np.arange(3), 8)
    made.add_keys([column, column], np.array([1, 2, 3]), lambda places: [(int(p), f"ä{p}") for p in places])
    assert KeySketch.from_bytes(made.to_bytes(), made.measure).heavy.counts == {
        (0, "ä0"): 1,
        (1, "ä1"): 2,
        (2, "ä2"): 3,
    }


def test_a_key_of_several_columns_is_no_java_object() -> None:
    check_columns(2, KeyedBy.SQL)
    with pytest.raises(InvalidInput, match="must be one value, but has 2 columns"):
        check_columns(2, KeyedBy.DATASTREAM)
    with pytest.raises(InvalidInput, match="1 to 56 columns, but has 57"):
        check_columns(57, KeyedBy.SQL)
