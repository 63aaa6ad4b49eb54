"""Sketches keep what they promise, of streams in parts of any size, merged in any order."""

from collections import Counter
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.keys.sketches import HASHES, HeavyHitters, KeySample, WindowCounts, window_hash

STREAMS = st.lists(st.lists(st.integers(0, 60).map(lambda key: key * key // 50), max_size=80), min_size=1, max_size=5)


def counted(keys: list[int]) -> tuple[np.ndarray, np.ndarray]:
    values, counts = np.unique(np.array(keys, np.int64), return_counts=True)
    return values, counts


def heavy_hitters(parts: list[list[int]], most: int) -> HeavyHitters:
    """One summary for each part, merged."""
    made = []
    for part in parts:
        values, counts = counted(part)
        made.append(HeavyHitters(most))
        made[-1].add(counts, lambda places, values=values: values[places].tolist())
    first, *others = made
    for other in others:
        first.merge(other)
    return first


def hashes(values: np.ndarray) -> np.ndarray:
    return window_hash(values).astype(np.uint32)


def key_sample(parts: list[list[int]], most: int) -> KeySample:
    """The first parts into one sample, the last one merged."""
    samples = [KeySample(most), KeySample(most)]
    for number, part in enumerate(parts):
        values, counts = counted(part)
        sample = samples[number == len(parts) - 1]
        sample.add(counts, hashes(values), lambda places, values=values: values[places].tolist())
    samples[0].merge(samples[1])
    return samples[0]


@given(STREAMS, st.integers(1, 20))
def test_counts_of_heavy_hitters_miss_no_more_than_the_error(parts: list[list[int]], most: int) -> None:
    made, true = heavy_hitters(parts, most), Counter(key for part in parts for key in part)
    assert len(made.counts) <= most
    assert made.error <= true.total() / (most + 1)
    for key, count in true.items():
        assert made.counts.get(key, 0) <= count <= made.counts.get(key, 0) + made.error


@given(STREAMS, st.integers(1, 20))
def test_a_key_sample_holds_the_keys_of_the_lowest_hashes_with_all_their_records(
    parts: list[list[int]], most: int
) -> None:
    made, true = key_sample(parts, most), Counter(key for part in parts for key in part)
    by_hash = sorted((int(hashes(np.array([key]))[0]), key) for key in true)
    assert made.counts == {key: true[key] for _, key in by_hash[:most]}
    assert made.threshold == (HASHES if len(true) <= most else by_hash[most][0])


def test_the_number_of_distinct_keys_is_estimated_without_bias() -> None:
    """50 samples of 1,000 keys each: their mean error is within three of its standard deviations, 1/sqrt(1000 x 50)."""
    errors, deviations = [], []
    for seed in range(50):
        values = np.arange(seed * 10**6, seed * 10**6 + 40_000)
        sample = KeySample(1000)
        sample.add(
            np.ones(len(values), np.int64), hashes(values), lambda places, values=values: values[places].tolist()
        )
        errors.append(sample.distinct / len(values) - 1)
        deviations.append(sample.distinct_deviation / len(values))
    assert abs(np.mean(errors)) < 3 / np.sqrt(1000 * 50)
    assert np.std(errors) == pytest.approx(np.mean(deviations), rel=0.35)


@given(
    st.lists(st.lists(st.tuples(st.integers(-5, 40), st.integers(0, 3)), max_size=50), min_size=1, max_size=4),
    st.integers(1, 10),
)
def test_windows_that_are_kept_have_all_their_records(parts: list[list[tuple[int, int]]], most: int) -> None:
    made = []
    for part in parts:
        windows, groups = (np.array([pair[i] for pair in part], np.int64) for i in (0, 1))
        made.append(WindowCounts(groups=4, most=most))
        made[-1].add(windows, groups, np.ones(len(part), np.int64))
    kept = reduce(lambda one, other: one.merge(other) or one, made)
    true = {window: [0] * 4 for part in parts for window, _ in part}
    for part in parts:
        for window, group in part:
            true[window][group] += 1
    lowest = sorted(true, key=lambda window: int(window_hash(np.array([window]))[0]))[:most]
    assert {window: counts.tolist() for window, counts in kept.counts.items()} == {w: true[w] for w in lowest}
