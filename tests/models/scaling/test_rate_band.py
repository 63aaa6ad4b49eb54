"""When a rate has left the band of its plan, and that the change is reported once."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.scaling.decisions.overload import SourceLoad
from models.scaling.rate_band import BandRules, BandVerdict, RateBand, RateChange

POLL_S = 10.0


def rules(**fields: Any) -> BandRules:
    small = {"upwards": 0.1, "downwards": 0.3, "polls": 3, "poll_interval_s": POLL_S, "cool_down_s": 0}
    return BandRules.model_validate({**small, **fields})


def seen(band: RateBand, rates: Sequence[object], begin_s: float = 0.0) -> list[BandVerdict]:
    """A poll every 10 s."""
    return [band.see(begin_s + POLL_S * n, rate) for n, rate in enumerate(rates)]


def kinds(band: RateBand, rates: Sequence[object], begin_s: float = 0.0) -> str:
    return " ".join(verdict.kind for verdict in seen(band, rates, begin_s))


def test_the_third_poll_in_a_row_outside_of_the_band_reports_the_median() -> None:
    *before, last = seen(RateBand(rules(), 1000.0), [1100, 1101, 1400, 1200])
    assert [v.kind for v in before] == ["inside", "outside", "outside"]
    assert last.kind == "changed" and last.change is not None
    change = last.change
    assert (change.old_rate, change.new_rate, change.low, change.high) == (1000, 1200, 700, pytest.approx(1100))
    assert [(s.time_s, s.rate) for s in change.samples] == [(10, 1101), (20, 1400), (30, 1200)]


def test_a_change_is_reported_once_and_the_way_back_is_another_one() -> None:
    band = RateBand(rules(), 1000.0)
    assert kinds(band, [2000] * 6) == "outside outside changed inside inside inside"
    assert band.reference == 2000
    assert kinds(band, [1000] * 4, 60) == "outside outside changed inside"


@pytest.mark.parametrize(
    "rates",
    [[1200, 1200, 1000, 1200, 1200], [1200, 1200, 600, 600], [600, 1200] * 4],
    ids=["back", "other side", "both"],
)
def test_what_is_not_in_a_row_on_one_side_is_no_change(rates: list[int]) -> None:
    assert "changed" not in kinds(RateBand(rules(), 1000.0), rates)


def test_a_change_below_the_minimum_is_none() -> None:
    assert kinds(RateBand(rules(minimum_change=500), 1000.0), [1499, 501] * 3) == " ".join(["inside"] * 6)
    assert kinds(RateBand(rules(minimum_change=500), 1000.0), [1501] * 3).endswith("changed")


def test_after_a_change_no_other_is_reported_until_it_has_cooled_down() -> None:
    band = RateBand(rules(cool_down_s=60), 1000.0)
    # Reported at 20 s, so 4000 is reported at 80 s, although it lasts since 30 s.
    assert kinds(band, [2000] * 3 + [4000] * 6) == (
        "outside outside changed outside outside cooling cooling cooling changed"
    )


def test_a_change_reported_by_another_process_starts_the_cool_down() -> None:
    assert kinds(RateBand(rules(), 1000.0, quiet_until_s=25.0), [2000] * 4) == "outside outside cooling changed"


def test_another_plan_is_another_band() -> None:
    band = RateBand(rules(), 1000.0)
    assert kinds(band, [2000, 2000]) == "outside outside"
    band.refer_to(2000)
    assert kinds(band, [2000, 2000], 20) == "inside inside"


@pytest.mark.parametrize(
    ("rate", "reason"),
    [
        (math.nan, "must be a number of records/s up to 1e+15"),
        (math.inf, "must be a number of records/s up to"),
        (10**400, "must be a number of records/s up to"),
        (-1.0, "must not be negative, but got -1 records/s"),
        (0.0, "emit nothing"),
        ("12", "must be a number, but got a str"),
        (None, "must be a number, but got a NoneType"),
        (True, "must be a number, but got a bool"),
    ],
    ids=["nan", "infinite", "huge", "negative", "zero", "text", "none", "bool"],
)
def test_invalid_readings_neither_end_nor_extend_a_streak(rate: object, reason: str) -> None:
    refused = RateBand(rules(), 1000.0).see(0.0, rate)
    assert refused.kind == "refused" and reason in refused.reason
    assert kinds(RateBand(rules(), 1000.0), [2000, rate, 2000, rate, 2000]) == (
        "outside refused outside refused changed"
    )


def test_a_clock_that_jumps_back_adds_nothing_and_one_that_jumps_ahead_begins_again() -> None:
    band = RateBand(rules(), 1000.0, timeout_s=1.0)
    assert band.see(100.0, 2000).kind == "outside"
    assert [band.see(t, 2000).kind for t in (100.0, 99.0, -1e9, math.nan)] == ["refused"] * 4
    # 4 polls of 10 s with 1 s to answer are 44 s: longer is no row.
    assert [band.see(t, 2000).kind for t in (144.0, 188.1, 200.0, 210.0)] == [
        "outside",
        "outside",
        "outside",
        "changed",
    ]


def test_a_band_around_nothing_is_refused() -> None:
    for reference in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="above 0"):
            RateBand(rules(), reference)


RATES = st.floats(1.0, 1e6)
READINGS = st.lists(st.one_of(RATES, st.sampled_from([math.nan, -5.0, "x", None, 0])), max_size=60)
RULES = st.builds(
    rules,
    upwards=st.floats(0.01, 2),
    downwards=st.floats(0.01, 0.99),
    polls=st.integers(1, 5),
    cool_down_s=st.sampled_from([0.0, 35.0, 200.0]),
    minimum_change=st.sampled_from([0.0, 10.0, 1000.0]),
)


def _changes(verdicts: Sequence[BandVerdict]) -> list[tuple[float, RateChange]]:
    return [(v.change.samples[-1].time_s, v.change) for v in verdicts if v.change is not None]


@given(RULES, RATES, READINGS)
def test_whatever_is_read_every_change_has_its_evidence(
    rules: BandRules, planned: float, readings: list[object]
) -> None:
    verdicts = seen(RateBand(rules, planned), readings)
    reference, told_at = planned, -math.inf
    for time_s, change in _changes(verdicts):
        assert change.old_rate == reference != change.new_rate
        assert change.low <= reference <= change.high
        assert len(change.samples) == rules.polls
        rates = [s.rate for s in change.samples]
        assert all(r > change.high for r in rates) or all(r < change.low for r in rates)
        assert all(abs(r - reference) >= rules.minimum_change * (1 - 1e-9) for r in rates)
        assert time_s - told_at >= rules.cool_down_s
        reference, told_at = change.new_rate, time_s
    assert all((v.change is not None) == (v.kind == "changed") for v in verdicts)


@given(RULES, RATES, st.floats(-1, 1), st.integers(1, 40))
def test_nothing_inside_of_the_band_is_a_change(rules: BandRules, planned: float, where: float, polls: int) -> None:
    share = where * (rules.upwards if where > 0 else rules.downwards) * 0.999
    assert set(kinds(RateBand(rules, planned), [planned * (1 + share)] * polls).split()) == {"inside"}


@given(RULES, RATES, RATES, st.integers(1, 60))
def test_a_rate_that_stays_is_reported_at_most_once(rules: BandRules, planned: float, rate: float, polls: int) -> None:
    changes = _changes(seen(RateBand(rules, planned), [rate] * polls))
    outside = not (1 - rules.downwards) * planned <= rate <= (1 + rules.upwards) * planned
    far = abs(rate - planned) >= rules.minimum_change
    assert len(changes) <= 1
    if len(changes) == 1:
        assert outside
    elif outside and far:
        assert polls < rules.polls


@given(RULES, RATES, READINGS, st.lists(st.floats(-100, 100), max_size=60))
def test_any_clock_is_handled(rules: BandRules, planned: float, readings: list[object], steps: list[float]) -> None:
    band, time_s, last = RateBand(rules, planned), 0.0, -math.inf
    for reading, step in zip(readings, steps, strict=False):
        time_s += step
        verdict = band.see(time_s, reading)
        if verdict.kind != "refused":
            assert time_s > last
            last = time_s
        if verdict.change is not None:
            times = [s.time_s for s in verdict.change.samples]
            assert times == sorted(set(times))


def test_what_an_overloaded_job_achieves_is_no_fall_of_its_rate() -> None:
    band = RateBand(rules(), 60_000.0)
    full = [SourceLoad("events", busyness=1.0, backpressure=0.0)]
    assert [band.see(POLL_S * n, 23_000.0, full).kind for n in range(6)] == ["held"] * 6
    assert "busy 100% of the time: more records may be arriving" in band.see(60.0, 23_000.0, full).reason
    relieved = [SourceLoad("events", busyness=0.3, backpressure=0.0)]
    assert [band.see(70.0 + POLL_S * n, 23_000.0, relieved).kind for n in range(3)] == ["outside", "outside", "changed"]


def test_a_rise_is_one_also_while_the_sources_are_full() -> None:
    band = RateBand(rules(), 1000.0)
    full = [SourceLoad("events", busyness=1.0, backpressure=0.0)]
    assert [band.see(POLL_S * n, 2000.0, full).kind for n in range(3)] == ["outside", "outside", "changed"]


def test_a_fall_does_not_count_while_the_lag_grows() -> None:
    band = RateBand(rules(), 1000.0)
    lag = [0.0, 5000.0, 10_000.0, 10_000.0, 10_000.0, 9900.0, 9800.0, 9700.0, 9600.0, 9500.0, 9400.0]
    found = [band.see(POLL_S * n, 500.0, [SourceLoad("events", pending=p)]) for n, p in enumerate(lag)]
    # Over the last minute it grows until the growth is more than a minute ago.
    kinds = [verdict.kind for verdict in found]
    assert kinds == ["held"] * 8 + ["outside", "outside", "changed"]
    assert "the pending records of the sources are not known for a minute yet" in found[0].reason
    assert "the pending records of the sources grow by 163/s: more records may be arriving" in found[6].reason


def follow(band: RateBand, emitted: Sequence[float], lag: Sequence[float], busyness: float) -> list[BandVerdict]:
    """A poll every 10 s."""
    return [
        band.see(POLL_S * n, rate, [SourceLoad("events", busyness=busyness, pending=p, pending_tasks=1)])
        for n, (rate, p) in enumerate(zip(emitted, lag, strict=True))
    ]


def test_what_arrives_at_an_overloaded_job_is_a_rise_where_its_lag_is_known() -> None:
    """400,000/s are offered to a job that is planned for 60,000/s and achieves 23,000/s."""
    found = follow(RateBand(rules(), 60_000.0), [23_000.0] * 9, [377_000.0 * POLL_S * n for n in range(9)], 1.0)
    assert [v.kind for v in found] == ["held"] * 6 + ["outside", "outside", "changed"]
    change = found[-1].change
    assert change is not None and change.new_rate == pytest.approx(400_000.0)
    assert [(s.rate, s.emitted_rate) for s in change.samples] == [(pytest.approx(400_000.0), 23_000.0)] * 3


@pytest.mark.parametrize("busyness", [0.5, 1.0])
def test_a_job_that_catches_up_is_not_planned_larger(busyness: float) -> None:
    """1000 records/s arrive; after an outage it reads 2000/s until nothing waits."""
    lag = [max(0.0, 100_000.0 - 1000.0 * POLL_S * n) for n in range(30)]
    emitted = [2000.0 if waiting else 1000.0 for waiting in lag]
    found = follow(RateBand(rules(), 1000.0), emitted, lag, busyness)
    assert {v.kind for v in found} <= {"held", "inside"}
    assert "not known for a minute yet: fewer records may be arriving" in found[0].reason


@given(
    st.floats(1e3, 1e6),
    st.floats(0.01, 0.69),
    st.lists(st.floats(0.0, 1e9), min_size=1, max_size=30),
    st.booleans(),
)
def test_an_overloaded_job_is_never_planned_smaller(
    planned: float, achieved: float, lag: list[float], reports_lag: bool
) -> None:
    """Whatever its lag does, as records expire and partitions come and go."""
    band = RateBand(rules(), planned)
    for n, waiting in enumerate(lag):
        load = SourceLoad("events", busyness=1.0, pending=waiting if reports_lag else None, pending_tasks=n % 2)
        change = band.see(POLL_S * n, planned * achieved, [load]).change
        assert change is None or change.new_rate > change.old_rate


def test_a_stalled_job_whose_lag_grows_is_followed_upwards() -> None:
    found = follow(RateBand(rules(), 1000.0), [0.0] * 9, [2000.0 * POLL_S * n for n in range(9)], 0.0)
    assert found[-1].change is not None and found[-1].change.new_rate == pytest.approx(2000.0)
    assert [v.kind for v in follow(RateBand(rules(), 1000.0), [0.0] * 9, [0.0] * 9, 0.0)][-1] == "refused"
