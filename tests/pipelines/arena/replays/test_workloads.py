"""Workloads: the published rates, what the formulas promise at any seed, and files of rates."""

import csv
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InvalidInput
from pipelines.arena.replays.workloads import Pattern, Workload, pattern, read_workload

PUBLISHED_PEAK = {"increasing": 2_500_000, "decreasing": 2_500_000, "random": 2_500_000, "cosine": 22_000}


@pytest.fixture(scope="module")
def published(root: Path) -> dict[str, list[float]]:
    """Columns of `tests/data/workloads/espa_140min.csv`."""
    with (root / "tests/data/workloads/espa_140min.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in PUBLISHED_PEAK}


@pytest.mark.parametrize("name", PUBLISHED_PEAK)
def test_the_published_rates_come_out_exactly(published, name):
    assert list(pattern(Pattern(name), PUBLISHED_PEAK[name]).rates) == published[name]


def test_steps_are_rounds_of_forty_minutes_after_ten_of_silence():
    steps = pattern(Pattern.STEPS, 1000)
    assert list(steps.rates) == [0.0] * 10 + [500.0] * 40 + [1000.0] * 40 + [500.0] * 50
    assert steps.changes_s == (600.0, 3000.0, 5400.0)


@given(seed=st.integers(0, 2**31), peak=st.floats(1e3, 1e8), minutes=st.integers(1, 300))
def test_random_walks_within_its_bounds(seed, peak, minutes):
    rates = pattern(Pattern.RANDOM, peak, seed, minutes).rates
    assert len(rates) == minutes
    assert all(0 <= rate <= peak for rate in rates)
    assert all(abs(after - before) <= peak / 5 + 1 for before, after in pairwise(rates))


@given(seed=st.integers(0, 2**31))
def test_cosine_stays_near_its_curve(seed):
    rates = pattern(Pattern.COSINE, 88_000, seed).rates
    assert rates[0] == pytest.approx(88_000, abs=1001)
    assert rates[30] == pytest.approx(8_000, abs=1001)
    assert rates[90] == pytest.approx(8_000, abs=1001)


def test_seeds_differ_and_repeat():
    assert pattern(Pattern.RANDOM, 1e6, 1) == pattern(Pattern.RANDOM, 1e6, 1) != pattern(Pattern.RANDOM, 1e6, 2)


def test_a_part_keeps_the_changes_that_lie_in_it():
    part = pattern(Pattern.STEPS, 1000).first(60)
    assert part == pattern(Pattern.STEPS, 1000, minutes=60)
    assert (part.seconds, part.changes_s) == (3600.0, (600.0, 3000.0))


def test_a_workload_is_scaled_by_its_highest_rate():
    assert Workload(name="w", rates=(1, 4, 2)).scaled_to(8).rates == (2, 8, 4)
    with pytest.raises(InvalidInput, match="all its rates are 0"):
        Workload(name="w", rates=(0, 0)).scaled_to(8)


@pytest.mark.parametrize(("peak", "minutes"), [(0, 10), (float("inf"), 10), (5, 0)])
def test_patterns_without_rates_are_refused(peak, minutes):
    with pytest.raises(InvalidInput, match="must"):
        pattern(Pattern.RANDOM, peak, minutes=minutes)


@pytest.fixture
def file(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "rates.csv"
        path.write_text(text)
        return path

    return write


def test_a_file_of_minutes_is_read(file):
    workload = read_workload(file("minute,mean_rate,max_rate\n0,10,11\n1,20.5,22\n"))
    assert (workload.name, workload.step_s, workload.rates) == ("rates", 60.0, (10.0, 20.5))


def test_a_file_of_seconds_is_read_by_the_column_asked_for(file):
    workload = read_workload(file("time_s,a,b\n100,1,10\n130,2,20\n160,3,30\n"), "b")
    assert (workload.name, workload.step_s, workload.rates) == ("rates-b", 30.0, (10.0, 20.0, 30.0))


def test_the_published_file_needs_a_column(root, published):
    path = root / "tests/data/workloads/espa_140min.csv"
    assert list(read_workload(path, "random").rates) == published["random"]
    with pytest.raises(InvalidInput, match="which column holds the rates, but has increasing, decreasing"):
        read_workload(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hour,rate\n0,1\n", "must have a column 'minute' or 'time_s'"),
        ("minute\n0\n", "which column holds the rates, but has none"),
        ("minute,rate\n0,1\n1,fast\n", "line 3: rate must be a number of 0 or more, but got 'fast'"),
        ("minute,rate\n0,-1\n", "line 2: rate must be a number of 0 or more, but got '-1'"),
        ("minute,rate\n0,nan\n", "line 2: rate must be a number"),
        ("minute,rate\n0,1\n1,1\n3,1\n", "line 4: minute must rise by 1 from row to row, but goes from 1 to 3"),
        ("time_s,rate\n0,1\n7,1\n", "multiple of the reporting interval of 5 s, but rises by 7 s"),
        ("minute,rate\n1,1\n0,1\n", "but rises by -60 s"),
    ],
)
def test_unusable_files_are_named(file, text, message):
    with pytest.raises(InvalidInput, match=message):
        read_workload(file(text))


def test_an_unknown_column_is_named(file):
    with pytest.raises(InvalidInput, match="no column 'c' of rates; it has a, b"):
        read_workload(file("minute,a,b\n0,1,2\n"), "c")
