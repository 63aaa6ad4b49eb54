"""The MST search against testbeds that take a fixed capacity."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from models.capacity.mst import Injection, MstSearch, MstSettings, Phase, Stop
from models.errors import InvalidInput, SluiceError


def drive(search: MstSearch, capacity: float) -> list[Injection]:
    """A testbed that takes min(rate, capacity)."""
    done = []
    while (injection := search.next()) is not None:
        done.append(injection)
        search.observe(min(injection.rate, capacity))
    return done


@given(capacity=st.floats(1.0, 1e9), warmup_rate=st.floats(1.0, 1e10), sensitivity=st.floats(0.001, 0.1))
def test_the_mst_found_is_within_the_sensitivity_of_the_capacity(capacity, warmup_rate, sensitivity):
    search = MstSearch(MstSettings(warmup_rate=warmup_rate, sensitivity=sensitivity, iterations=100))
    drive(search, capacity)
    assert search.stop is Stop.CONVERGED
    assert search.mst is not None
    assert search.mst == pytest.approx(capacity, rel=sensitivity)
    assert search.mst <= capacity


@given(capacity=st.floats(1.0, 1e9), warmup_share=st.floats(0.2, 5.0))
def test_the_published_settings_come_within_a_tenth(capacity, warmup_share):
    # Their limit of 8 iterations ends most searches before they converge.
    search = MstSearch(MstSettings.simple().model_copy(update={"warmup_rate": warmup_share * capacity}))
    drive(search, capacity)
    assert search.mst == pytest.approx(capacity, rel=0.1)


def observed(search: MstSearch, *achieved: float) -> list[float]:
    """Targets of a search whose warm-up achieves the first of these rates, and whose observations the others."""
    rates = [achieved[0], *achieved]  # a warm-up is two injections
    while (injection := search.next()) is not None:
        search.observe(rates.pop(0) if injection.phase in (Phase.WARMUP, Phase.OBSERVE) else injection.rate)
    return [trial.target_rate for trial in search.history]


@given(
    capacity=st.floats(1.0, 1e9),
    warmup_share=st.floats(0.01, 5.0),
    bracket=st.floats(0.01, 0.5),
    sensitivity=st.floats(0.01, 0.1),
)
def test_with_a_bracket_the_mst_is_found_as_exactly(capacity, warmup_share, bracket, sensitivity):
    settings = MstSettings(bracket=bracket, sensitivity=sensitivity, iterations=100)
    search = MstSearch(settings.model_copy(update={"warmup_rate": warmup_share * capacity}))
    drive(search, capacity)
    assert search.stop is Stop.CONVERGED
    assert search.mst == pytest.approx(capacity, rel=sensitivity)


def test_with_a_bracket_the_search_stays_around_the_rate_of_the_warm_up():
    search = MstSearch(MstSettings(bracket=0.2, sensitivity=0.05))
    targets = [i.rate for i in drive(search, 1000.0) if i.phase is Phase.OBSERVE]
    # 1000 is sustained, 1200 is not and tells 1000 again; then in the middle.
    assert targets == pytest.approx([1000.0, 1200.0, 1100.0, 1050.0])
    assert search.mst == 1000.0
    assert search.reason == "converged within 5.0%: 1,000 records/s was sustained, 1,050 records/s was not"


def test_where_the_warm_up_told_too_little_steps_widen():
    up = MstSearch(MstSettings(bracket=0.2, sensitivity=0.05))
    # x 1.2, then x 1.4, then x 1.8; what that achieved; 5 % more.
    assert observed(up, 100.0, 100.0, 120.0, 168.0, 235.0, 235.0, 235.0) == pytest.approx(
        [100.0, 120.0, 168.0, 302.4, 235.0, 246.75]
    )
    assert up.mst == 235.0


def test_where_the_warm_up_told_too_much_what_was_achieved_comes_next():
    down = MstSearch(MstSettings(bracket=0.2, sensitivity=0.05))
    # 90 at 168, and again at 90; then 5 % more, and 10 % more. What 103.95 achieved is below 94.5: the middle comes next.
    assert observed(down, 168.0, 90.0, 90.0, 94.5, 94.0, 95.0) == pytest.approx([168.0, 90.0, 94.5, 103.95, 99.225])
    assert down.mst == 94.5


@given(first=st.floats(1.0, 1e9), sensitivity=st.floats(0.02, 0.2))
def test_a_target_that_is_missed_by_little_is_followed_by_one_that_is_lower_by_the_sensitivity(first, sensitivity):
    search = MstSearch(MstSettings(bracket=0.2, sensitivity=sensitivity))
    lower = (1 - sensitivity) * first
    assert observed(search, first, 0.985 * first, lower) == pytest.approx([first, lower])
    assert search.mst == lower and search.stop is Stop.CONVERGED


def test_a_measurement_cools_down_ramps_up_and_observes():
    done = drive(MstSearch(MstSettings.simple()), capacity=50_000.0)
    assert [(i.rate, i.seconds, i.phase) for i in done[:5]] == [
        (1e8, 90.0, Phase.WARMUP),
        (1e8, 30.0, Phase.WARMUP),  # its rate is the first target
        (6400.0, 15.0, Phase.COOLDOWN),
        (50_000.0, 30.0, Phase.RAMP),
        (50_000.0, 30.0, Phase.OBSERVE),
    ]


def test_the_target_doubles_until_one_fails_and_then_halves_the_bracket():
    search = MstSearch(MstSettings(warmup_rate=100.0))
    drive(search, capacity=330.0)
    assert [(t.target_rate, t.sustained) for t in search.history] == [
        (100, True),
        (200, True),
        (400, False),
        (300, True),
        (350, False),
        (325, True),
        (337.5, False),  # 330 of 337.5 is 97.8 %
    ]
    assert search.mst == 325
    assert search.reason == "stopped after 8 iterations: 325 records/s was sustained, 338 records/s was not"


def test_99_percent_is_sustained_and_the_mst_is_what_was_achieved():
    search = MstSearch(MstSettings(iterations=2))
    for achieved in (1000.0, 1000.0, 500.0, 990.0, 990.0):
        search.observe(achieved)
    assert search.history[0].sustained
    assert search.mst == 990
    assert search.next() is None


def test_the_published_durations_add_up():
    # StreamBed section 8.2: 645 s for simple queries, 900 s for complex ones.
    assert MstSettings.simple().longest_s == 645
    assert MstSettings.complex().longest_s == 900
    for settings, seconds in ((MstSettings.simple(), 645), (MstSettings.complex(), 900)):
        assert sum(i.seconds for i in drive(MstSearch(settings), capacity=1e5)) == seconds


def test_the_cooldown_of_a_slow_job_stays_below_its_target():
    done = drive(MstSearch(MstSettings.complex()), capacity=900.0)
    assert {i.rate for i in done if i.phase is Phase.COOLDOWN} <= {0.5 * i.rate for i in done if i.phase is Phase.RAMP}


def test_the_cooldown_may_be_left_out():
    settings = MstSettings(cooldown_s=0)
    phases = [i.phase for i in drive(MstSearch(settings), capacity=1e5)]
    assert phases[:4] == [Phase.WARMUP, Phase.WARMUP, Phase.RAMP, Phase.OBSERVE] and Phase.COOLDOWN not in phases
    assert settings.longest_s == 120 + 7 * 60


def test_the_cooldown_may_be_left_out_after_a_sustained_target():
    settings = MstSettings(warmup_rate=100.0, iterations=6, cooldown_after_sustained=False)
    done = drive(MstSearch(settings), capacity=330.0)
    steps = [(i.rate, i.phase.value) for i in done if i.phase is not Phase.WARMUP]
    assert steps == [
        (50, "cooldown"),  # after the warm-up
        *[(rate, phase) for rate in (100, 200, 400) for phase in ("ramp", "observe")],
        (150, "cooldown"),  # 400 was not sustained
        *[(rate, phase) for rate in (300, 350) for phase in ("ramp", "observe")],
    ]


def test_nothing_sustained_is_none_with_a_reason():
    search = MstSearch(MstSettings())
    while (injection := search.next()) is not None:
        search.observe(0.9 * injection.rate)
    assert search.mst is None
    assert search.stop is Stop.ITERATIONS
    assert "none of the 7 target rates was sustained" in str(search.reason)


def test_a_job_that_emits_nothing_ends_after_the_warm_up():
    search = MstSearch(MstSettings())
    assert len(drive(search, capacity=0.0)) == 2
    assert (search.mst, search.stop, search.history) == (None, Stop.NO_FLOW, ())


def test_next_repeats_itself_and_a_new_search_fed_the_same_goes_on():
    settings = MstSettings()
    first, seen = MstSearch(settings), []
    while (injection := first.next()) is not None:
        assert first.next() == injection
        resumed = MstSearch(settings)
        for achieved in seen:
            resumed.observe(achieved)
        assert resumed.next() == injection
        seen.append(min(injection.rate, 777.0))
        first.observe(seen[-1])


def test_what_cannot_be_observed_is_refused():
    search = MstSearch(MstSettings())
    for rate in (float("nan"), float("inf"), -1.0):
        with pytest.raises(InvalidInput, match="must be finite and at least 0"):
            search.observe(rate)
    drive(search, 100.0)
    with pytest.raises(SluiceError, match="has ended"):
        search.observe(100.0)


@pytest.mark.parametrize("field", ["warmup_s", "cooldown_s", "ramp_s", "observe_s"])
def test_durations_are_multiples_of_the_sample_interval(field):
    with pytest.raises(ValidationError, match="multiple of the sample interval of 5 s"):
        MstSettings(**{field: 12.0})
