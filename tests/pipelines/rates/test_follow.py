"""A rate change is reported once, however many processes follow the job and however often they restart."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from flink.server import FakeFlink
from models.errors import SluiceError
from models.scaling.decisions.overload import SourceReading
from pipelines.rates.follow import JobFollower, followed_jobs
from pipelines.rates.reading import RateUnknown
from pipelines.rates.record import RateChangeEvent, event_cause, last_event, take
from pipelines.rates.status import read_status
from pipelines.store.pins import release_pin
from pipelines.store.plans import PlanStore

JOB = "wordcount"


class Rates:
    """One rate for each poll, the last one for all further polls; an error is raised."""

    def __init__(self, *rates: object) -> None:
        self.rates: list[object] = list(rates)

    def __call__(self, *_: object) -> Any:
        rate = self.rates.pop(0) if len(self.rates) > 1 else self.rates[0]
        if isinstance(rate, Exception):
            raise rate
        return rate if isinstance(rate, SourceReading) else SourceReading(rate)  # type: ignore[arg-type]


def follower(followed: Any, clocks: Any, *rates: object) -> JobFollower:
    return JobFollower(followed.workspace, JOB, read=Rates(*rates), clock=clocks.clock, now=clocks.now)


def polled(followers: Sequence[JobFollower] | JobFollower, clocks: Any, times: int) -> list[RateChangeEvent]:
    """The events reported while all followers poll `times` times, a second apart, in turn."""
    events = []
    for _ in range(times):
        clocks.seconds += 1.0
        clocks.day += timedelta(seconds=1)
        for one in [followers] if isinstance(followers, JobFollower) else followers:
            events += [found] if (found := one.poll()) else []
    return events


def test_a_change_is_reported_with_its_evidence_and_kept(followed: Any, clocks: Any) -> None:
    (event,) = polled(follower(followed, clocks, 1000.0, 1500.0), clocks, 10)
    assert (event.job, event.plan_version, event.number) == (JOB, 1, 1)
    assert (event.change.old_rate, event.change.new_rate) == (1000.0, 1500.0)
    assert [s.rate for s in event.change.samples] == [1500.0, 1500.0]
    assert event.key == "rate-changes/wordcount/v000001-000001.json"
    assert last_event(followed.workspace, JOB) == event
    cause = event_cause(followed.workspace, event.key)
    assert cause is not None and "1,500.0 records/s, 2 times in a row outside of 700.0 to 1,100.0" in cause
    assert "Prometheus at http://127.0.0.1:1: q" in cause


def test_two_followers_of_a_job_report_a_change_once(followed: Any, clocks: Any) -> None:
    both = [follower(followed, clocks, 1500.0) for _ in range(2)]
    assert [t.number for t in polled(both, clocks, 10)] == [1]
    for one in both:
        one._read = Rates(3000.0)
    assert [(t.number, t.change.old_rate) for t in polled(both, clocks, 10)] == [(2, 1500.0)]


def test_a_restarted_follower_does_not_repeat_a_change(followed: Any, clocks: Any) -> None:
    (event,) = polled(follower(followed, clocks, 1500.0), clocks, 5)
    assert take(followed.workspace, event.key, "a run")
    assert polled(follower(followed, clocks, 1500.0), clocks, 5) == []
    (second,) = polled(follower(followed, clocks, 2000.0), clocks, 5)
    assert (second.number, second.change.old_rate) == (2, 1500.0)


def test_a_change_that_no_run_took_is_sent_again_after_a_restart(followed: Any, clocks: Any) -> None:
    (event,) = polled(follower(followed, clocks, 1500.0), clocks, 5)
    assert polled(follower(followed, clocks, 1500.0), clocks, 5) == [event]
    followed.plan(1500.0)  # the plan it asked for was made otherwise
    assert polled(follower(followed, clocks, 1500.0), clocks, 5) == []


def test_a_change_is_taken_by_one_run_even_when_its_task_is_retried(followed: Any, clocks: Any) -> None:
    (event,) = polled(follower(followed, clocks, 1500.0), clocks, 5)
    assert [take(followed.workspace, event.key, run) for run in ("a", "b", "a", "b")] == [True, False, True, False]


def test_a_new_plan_sets_a_new_band(followed: Any, clocks: Any) -> None:
    follows = follower(followed, clocks, 1500.0)
    assert len(polled(follows, clocks, 3)) == 1
    followed.plan(1500.0)
    assert polled(follows, clocks, 5) == []
    followed.plan(1000.0)
    (event,) = polled(follows, clocks, 5)
    assert (event.plan_version, event.number, event.change.old_rate) == (3, 1, 1000.0)


def test_the_cool_down_outlasts_a_restart_and_a_new_plan(followed: Any, clocks: Any) -> None:
    followed.say(url="http://127.0.0.1:1", cool_down_s=20.0)
    (event,) = polled(follower(followed, clocks, 1500.0), clocks, 5)  # reported at 2 s
    take(followed.workspace, event.key, "a run")
    followed.plan(1500.0)
    assert polled(follower(followed, clocks, 3000.0), clocks, 16) == []  # until 21 s
    assert len(polled(follower(followed, clocks, 3000.0), clocks, 5)) == 1


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(days=400)], ids=["back", "ahead"])
def test_a_jump_of_the_system_clock_does_not_lengthen_the_cool_down(
    followed: Any, clocks: Any, jump: timedelta
) -> None:
    followed.say(url="http://127.0.0.1:1", cool_down_s=20.0)
    (event,) = polled(follower(followed, clocks, 1500.0), clocks, 5)
    take(followed.workspace, event.key, "a run")
    clocks.day += jump
    follows = follower(followed, clocks, 3000.0)
    assert len(polled(follows, clocks, 22)) == 1


def test_an_unreadable_rate_is_logged_once_and_polled_on(
    followed: Any, clocks: Any, caplog: pytest.LogCaptureFixture
) -> None:
    gone = RateUnknown("Prometheus does not answer")
    with caplog.at_level("INFO", logger="pipelines.rates"):
        follows = follower(followed, clocks, gone, gone, float("nan"), -1.0, gone, 1500.0, gone, 1500.0)
        assert len(polled(follows, clocks, 12)) == 1
    assert caplog.messages.count("the rate of wordcount is unknown: Prometheus does not answer") == 3
    assert any("must be a number of records/s" in message for message in caplog.messages)


def test_a_damaged_plan_or_job_file_is_logged_and_the_job_followed_on(
    followed: Any, clocks: Any, caplog: pytest.LogCaptureFixture
) -> None:
    follows = follower(followed, clocks, 1500.0)
    text = followed.file.read_text()
    followed.file.write_text("name: [")
    assert polled(follows, clocks, 3) == []
    assert "is unknown" in caplog.messages[-1]
    followed.file.write_text(text)
    followed.workspace.write_bytes("plans/wordcount/v000002.json", b"{")
    assert [t.plan_version for t in polled(follows, clocks, 3)] == [1]


def test_a_damaged_change_is_skipped_and_its_number_not_reused(followed: Any, clocks: Any) -> None:
    (event,) = polled(follower(followed, clocks, 1500.0), clocks, 3)
    followed.workspace.write_bytes(event.key, b"{")
    assert last_event(followed.workspace, JOB) is None
    assert [t.number for t in polled(follower(followed, clocks, 2000.0), clocks, 3)] == [2]


def test_only_jobs_whose_file_asks_for_it_are_followed(followed: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert followed_jobs(followed.workspace) == [JOB]
    for operations in (None, {}):
        followed.write(operations)
        assert followed_jobs(followed.workspace) == []
    followed.write({"replan": {"polls": 0}})
    assert followed_jobs(followed.workspace) == []
    assert "the rate of wordcount is not followed" in caplog.messages[-1]


def test_a_change_that_a_full_disk_could_not_keep_is_reported_later(
    followed: Any, clocks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    follows = follower(followed, clocks, 1500.0)
    with monkeypatch.context() as patch:
        patch.setattr(type(followed.workspace), "create_bytes", _no_space)
        assert polled(follows, clocks, 5) == []
    assert len(polled(follows, clocks, 5)) == 1


def _no_space(*_: object) -> None:
    raise SluiceError("no space left on device")


@pytest.fixture
def overloaded(followed: Any, clocks: Any) -> Iterator[tuple[FakeFlink, JobFollower]]:
    """A job on Flink that is planned for 60,000 records/s and achieves 23,000, busy all the time."""
    flink = FakeFlink()
    flink.plan = {"nodes": [{"id": id_, "description": name, "parallelism": 1} for id_, name in flink.names.items()]}
    flink.plan["nodes"][1]["inputs"] = [{"id": "a" * 32, "ship_strategy": "HASH"}]  # type: ignore[index]
    try:
        followed.plan(60_000.0)
        rates = {"flink": {"url": flink.url}, "timeout_s": 2.0}
        followed.write({"replan": {"rates": rates, "polls": 2, "poll_interval_s": 1.0, "cool_down_s": 0.0}})
        flink.emitted_per_s, flink.busyness = 23_000.0, 1.0
        yield flink, JobFollower(followed.workspace, JOB, clock=clocks.clock, now=clocks.now)
    finally:
        flink.close()


def test_what_an_overloaded_flink_achieves_is_not_reported_as_a_fall(
    overloaded: tuple[FakeFlink, JobFollower], followed: Any, clocks: Any
) -> None:
    """400,000 records/s are offered, which Flink does not report."""
    flink, follows = overloaded
    assert polled(follows, clocks, 6) == []
    held = read_status(followed.workspace, JOB)
    assert held is not None and held.state == "held" and "busy 100% of the time" in held.reason
    flink.busyness = 0.4
    (event,) = polled(follows, clocks, 6)
    assert event.change.new_rate == 23_000.0
    after = read_status(followed.workspace, JOB)
    assert after is not None and (after.state, after.reason) == ("followed", "")


@pytest.mark.slow
def test_what_arrives_at_an_overloaded_flink_that_reports_its_lag_is_reported(
    overloaded: tuple[FakeFlink, JobFollower], clocks: Any
) -> None:
    """A source that reports `pendingRecords`: the plan must follow the 400,000 records/s."""
    flink, follows = overloaded
    flink.pending = 0.0
    events = []
    for _ in range(66):
        flink.pending += 400_000.0 - 23_000.0  # a second
        events += polled(follows, clocks, 1)
    (event,) = events
    assert event.change.new_rate == pytest.approx(400_000.0)
    assert event.change.samples[-1].emitted_rate == 23_000.0


def test_the_start_of_an_unreadable_rate_is_kept_until_it_is_readable(followed: Any, clocks: Any) -> None:
    assert read_status(followed.workspace, JOB) is None
    gone, token = RateUnknown("Prometheus does not answer"), RateUnknown("the environment variable X must hold a token")
    follows = follower(followed, clocks, gone, gone, token, token, 1000.0)
    began = clocks.day + timedelta(seconds=1)
    for _, reason in zip(range(4), [str(gone)] * 2 + [str(token)] * 2, strict=True):
        polled(follows, clocks, 1)
        status = read_status(followed.workspace, JOB)
        assert status is not None and (status.state, status.since, status.reason) == ("unreadable", began, reason)
    restarted = follower(followed, clocks, token)
    polled(restarted, clocks, 1)
    assert read_status(followed.workspace, JOB) == status, "a restart does not reset the time"
    polled(follows, clocks, 1)
    status = read_status(followed.workspace, JOB)
    assert status is not None and (status.state, status.since) == ("followed", clocks.day)


def test_a_status_that_cannot_be_kept_stops_nothing(
    followed: Any, clocks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("pipelines.rates.follow.keep_status", full)
    assert len(polled(follower(followed, clocks, 1500.0), clocks, 3)) == 1


def test_the_rate_of_a_pinned_job_asks_for_no_plan_until_it_is_released(
    followed: Any, clocks: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    followed.plan(1500.0)
    PlanStore(followed.workspace).rollback(JOB, 1, "2026-01-01T00:00:00+00:00", by="Ada", reason="lag grew")
    one = follower(followed, clocks, 1500.0)
    assert polled(one, clocks, 10) == []
    assert caplog.text.count("is pinned to version 3 of its plan by Ada") == 1
    status = read_status(followed.workspace, JOB)
    assert status is not None and status.state == "pinned"
    assert "lag grew; its rate is not followed until `sluice plans unpin wordcount`" in status.reason
    release_pin(followed.workspace, JOB)
    (event,) = polled(one, clocks, 10)
    assert (event.plan_version, event.change.old_rate, event.change.new_rate) == (3, 1000.0, 1500.0)
