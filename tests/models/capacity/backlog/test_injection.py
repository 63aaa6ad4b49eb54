"""The search by injection finds the capacity of a fluid job, whatever it is and however it commits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.capacity.backlog.injection import InjectionEnd, InjectionSearch, InjectionSettings
from models.capacity.backlog.lag import LagPoint
from models.capacity.mst import Injection, MstSettings, Phase
from models.errors import InvalidInput, SluiceError

from .conftest import FluidJob

SEARCH = MstSettings(warmup_s=60.0, cooldown_s=15.0, ramp_s=15.0, observe_s=30.0, iterations=14, bracket=0.1)


def _search(job: FluidJob, most_rate: float = 1e6, **others: object) -> tuple[InjectionSearch, list[Injection]]:
    search = InjectionSearch(InjectionSettings.model_validate({"search": SEARCH, "most_rate": most_rate, **others}))
    done = []
    while (wanted := search.next()) is not None:
        done.append(wanted)
        search.observe(job.fed(wanted.rate, wanted.seconds))
    return search, done


@settings(max_examples=30)
@given(capacity=st.floats(100, 9e5), commit_s=st.sampled_from([0.5, 1.0, 5.0]))
def test_it_finds_the_capacity(capacity: float, commit_s: float) -> None:
    search, _ = _search(FluidJob(capacity, commit_s))
    assert search.end is InjectionEnd.FOUND
    # A target is sustained up to 1 % above the capacity, and the search ends with 1 % between two targets.
    assert search.mst == pytest.approx(capacity, rel=0.021)
    assert not search.is_lower_bound and search.reason


@settings(max_examples=30)
@given(capacity=st.floats(1000, 9e5), most_rate=st.floats(1000, 9e5))
def test_nothing_above_what_can_be_fed_is_asked_for(capacity: float, most_rate: float) -> None:
    search, done = _search(FluidJob(capacity, most_fed=most_rate), most_rate)
    assert max(one.rate for one in done) <= most_rate
    if capacity > 1.05 * most_rate:
        assert search.is_lower_bound and search.reason is not None and "may take more" in search.reason
    if capacity < 0.95 * most_rate:
        assert not search.is_lower_bound
        assert search.mst == pytest.approx(capacity, rel=0.021)


def test_each_target_begins_without_lag() -> None:
    job = FluidJob(10_000.0, commit_s=5.0)
    search = InjectionSearch(InjectionSettings(search=SEARCH, most_rate=50_000.0))
    while (wanted := search.next()) is not None:
        if wanted.phase is Phase.RAMP:
            assert job.arrived - job.taken <= 10_000.0
        search.observe(job.fed(wanted.rate, wanted.seconds))
    assert search.mst == pytest.approx(10_000.0, rel=0.021)


def test_a_lag_that_never_goes_away_ends_the_search() -> None:
    job = FluidJob(100.0)
    search = InjectionSearch(InjectionSettings(search=SEARCH, most_rate=1e6, first_rate=1e5, drain_steps=3))
    asked = 0
    while (wanted := search.next()) is not None:
        asked += 1
        search.observe(job.fed(wanted.rate, wanted.seconds))
    assert search.end is InjectionEnd.NOT_DRAINED and search.mst is None and asked == 2 + 3, (
        "a climb, the rest of the warm-up, three cool-downs"
    )
    assert search.reason is not None and "hardly reads" in search.reason


def test_it_is_used_in_turn() -> None:
    search, _ = _search(FluidJob(1000.0), most_rate=2000.0)
    with pytest.raises(SluiceError, match="InjectionSearch has ended"):
        search.observe([LagPoint(0.0, 0.0, 0.0)] * 2)
    fresh = InjectionSearch(InjectionSettings(search=SEARCH, most_rate=1.0))
    with pytest.raises(InvalidInput, match="two readings of the lag or more, but got 1"):
        fresh.observe([LagPoint(0.0, 0.0, 0.0)])
