"""Following a job: one change is told once, whoever follows it, and however often it is begun anew."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from flink_server import FakeFlink
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
    """What is read, one a poll; an error is raised, the last one goes on."""

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
    """What is told when each polls so often, a second apart, each in its turn."""
    told = []
    for _ in range(times):
        clocks.seconds += 1.0
        clocks.day += timedelta(seconds=1)
        for one in [followers] if isinstance(followers, JobFollower) else followers:
            told += [found] if (found := one.poll()) else []
    return told


def test_a_change_is_reported_with_its_evidence_and_kept(followed: Any, clocks: Any) -> None:
    (told,) = polled(follower(followed, clocks, 1000.0, 1500.0), clocks, 10)
    assert (told.job, told.plan_version, told.number) == (JOB, 1, 1)
    assert (told.change.old_rate, told.change.new_rate) == (1000.0, 1500.0)
    assert [s.rate for s in told.change.samples] == [1500.0, 1500.0]
    assert told.key == "rate-changes/wordcount/v000001-000001.json"
    assert last_event(followed.workspace, JOB) == told
    cause = event_cause(followed.workspace, told.key)
    assert cause is not None and "1,500.0 records/s, 2 times in a row outside of 700.0 to 1,100.0" in cause
    assert "Prometheus at http://127.0.0.1:1: q" in cause


def test_two_that_follow_the_same_job_tell_a_change_once(followed: Any, clocks: Any) -> None:
    both = [follower(followed, clocks, 1500.0) for _ in range(2)]
    assert [t.number for t in polled(both, clocks, 10)] == [1]
    for one in both:
        one._read = Rates(3000.0)
    assert [(t.number, t.change.old_rate) for t in polled(both, clocks, 10)] == [(2, 1500.0)]


def test_one_that_begins_again_knows_what_was_told(followed: Any, clocks: Any) -> None:
    (told,) = polled(follower(followed, clocks, 1500.0), clocks, 5)
    assert take(followed.workspace, told.key, "a run")
    assert polled(follower(followed, clocks, 1500.0), clocks, 5) == []
    (second,) = polled(follower(followed, clocks, 2000.0), clocks, 5)
    assert (second.number, second.change.old_rate) == (2, 1500.0)


def test_a_change_that_nobody_took_is_sent_again_once_when_it_begins_again(followed: Any, clocks: Any) -> None:
    (told,) = polled(follower(followed, clocks, 1500.0), clocks, 5)
    assert polled(follower(followed, clocks, 1500.0), clocks, 5) == [told]
    followed.plan(1500.0)  # what it asked for came by other ways
    assert polled(follower(followed, clocks, 1500.0), clocks, 5) == []


def test_a_change_is_taken_by_one_which_may_ask_again(followed: Any, clocks: Any) -> None:
    (told,) = polled(follower(followed, clocks, 1500.0), clocks, 5)
    assert [take(followed.workspace, told.key, run) for run in ("a", "b", "a", "b")] == [True, False, True, False]


def test_a_new_plan_is_another_band(followed: Any, clocks: Any) -> None:
    follows = follower(followed, clocks, 1500.0)
    assert len(polled(follows, clocks, 3)) == 1
    followed.plan(1500.0)
    assert polled(follows, clocks, 5) == []
    followed.plan(1000.0)
    (told,) = polled(follows, clocks, 5)
    assert (told.plan_version, told.number, told.change.old_rate) == (3, 1, 1000.0)


def test_the_cool_down_outlasts_a_new_start_and_a_new_plan(followed: Any, clocks: Any) -> None:
    followed.say(url="http://127.0.0.1:1", cool_down_s=20.0)
    (told,) = polled(follower(followed, clocks, 1500.0), clocks, 5)  # told at 2 s
    take(followed.workspace, told.key, "a run")
    followed.plan(1500.0)
    assert polled(follower(followed, clocks, 3000.0), clocks, 16) == []  # until 21 s
    assert len(polled(follower(followed, clocks, 3000.0), clocks, 5)) == 1


@pytest.mark.parametrize("jump", [timedelta(days=-400), timedelta(days=400)], ids=["back", "ahead"])
def test_a_time_of_day_that_jumps_makes_the_cool_down_no_longer(followed: Any, clocks: Any, jump: timedelta) -> None:
    followed.say(url="http://127.0.0.1:1", cool_down_s=20.0)
    (told,) = polled(follower(followed, clocks, 1500.0), clocks, 5)
    take(followed.workspace, told.key, "a run")
    clocks.day += jump
    follows = follower(followed, clocks, 3000.0)
    assert len(polled(follows, clocks, 22)) == 1


def test_what_cannot_be_read_is_said_once_and_followed_on(
    followed: Any, clocks: Any, caplog: pytest.LogCaptureFixture
) -> None:
    gone = RateUnknown("Prometheus does not answer")
    with caplog.at_level("INFO", logger="pipelines.rates"):
        follows = follower(followed, clocks, gone, gone, float("nan"), -1.0, gone, 1500.0, gone, 1500.0)
        assert len(polled(follows, clocks, 12)) == 1
    assert caplog.messages.count("the rate of wordcount is not known: Prometheus does not answer") == 3
    assert any("must be a number of records/s" in message for message in caplog.messages)


def test_a_damaged_plan_or_job_file_is_said_and_followed_on(
    followed: Any, clocks: Any, caplog: pytest.LogCaptureFixture
) -> None:
    follows = follower(followed, clocks, 1500.0)
    text = followed.file.read_text()
    followed.file.write_text("name: [")
    assert polled(follows, clocks, 3) == []
    assert "is not known" in caplog.messages[-1]
    followed.file.write_text(text)
    followed.workspace.write_bytes("plans/wordcount/v000002.json", b"{")
    assert [t.plan_version for t in polled(follows, clocks, 3)] == [1]


def test_a_damaged_change_is_passed_over_and_its_number_not_used_again(followed: Any, clocks: Any) -> None:
    (told,) = polled(follower(followed, clocks, 1500.0), clocks, 3)
    followed.workspace.write_bytes(told.key, b"{")
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


def test_a_full_disk_tells_nothing_and_is_followed_on(
    followed: Any, clocks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    follows = follower(followed, clocks, 1500.0)
    with monkeypatch.context() as patch:
        patch.setattr(type(followed.workspace), "create_bytes", _no_space)
        assert polled(follows, clocks, 5) == []
    assert len(polled(follows, clocks, 5)) == 1


def _no_space(*_: object) -> None:
    raise SluiceError("no space left on device")


def test_what_an_overloaded_flink_achieves_is_not_reported_as_a_fall(followed: Any, clocks: Any) -> None:
    """400,000 records/s are offered to a job that is planned for 60,000 and achieves 23,000."""
    flink = FakeFlink()
    flink.plan = {"nodes": [{"id": id_, "description": name, "parallelism": 1} for id_, name in flink.names.items()]}
    flink.plan["nodes"][1]["inputs"] = [{"id": "a" * 32, "ship_strategy": "HASH"}]  # type: ignore[index]
    try:
        followed.plan(60_000.0)
        rates = {"flink": {"url": flink.url}, "timeout_s": 2.0}
        followed.write({"replan": {"rates": rates, "polls": 2, "poll_interval_s": 1.0, "cool_down_s": 0.0}})
        follows = JobFollower(followed.workspace, JOB, clock=clocks.clock, now=clocks.now)
        flink.emitted_per_s, flink.busyness = 23_000.0, 1.0
        assert polled(follows, clocks, 6) == []
        held = read_status(followed.workspace, JOB)
        assert held is not None and held.state == "held" and "busy 100% of the time" in held.reason
        flink.busyness = 0.4
        (told,) = polled(follows, clocks, 6)
        assert told.change.new_rate == 23_000.0
        after = read_status(followed.workspace, JOB)
        assert after is not None and (after.state, after.reason) == ("followed", "")
    finally:
        flink.close()


def test_since_when_a_rate_cannot_be_read_is_kept_until_it_can(followed: Any, clocks: Any) -> None:
    assert read_status(followed.workspace, JOB) is None
    gone, token = RateUnknown("Prometheus does not answer"), RateUnknown("the environment variable X must hold a token")
    follows = follower(followed, clocks, gone, gone, token, token, 1000.0)
    began = clocks.day + timedelta(seconds=1)
    for _, reason in zip(range(4), [str(gone)] * 2 + [str(token)] * 2, strict=True):
        polled(follows, clocks, 1)
        status = read_status(followed.workspace, JOB)
        assert status is not None and (status.state, status.since, status.reason) == ("unreadable", began, reason)
    anew = follower(followed, clocks, token)
    polled(anew, clocks, 1)
    assert read_status(followed.workspace, JOB) == status, "who begins anew does not reset the time"
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
    assert "lag grew; its rate is not judged before `sluice plans unpin wordcount`" in status.reason
    release_pin(followed.workspace, JOB)
    (told,) = polled(one, clocks, 10)
    assert (told.plan_version, told.change.old_rate, told.change.new_rate) == (3, 1000.0, 1500.0)
