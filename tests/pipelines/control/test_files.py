from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from models.scaling.control.limits import ControlLimits
from pipelines.control.files import AutopilotFiles, AutopilotState, StopSwitch, autopilot_jobs
from pipelines.control.record import AutopilotDecision, PolicyAdvice, SeenJob
from pipelines.store.workspace import Workspace

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)
NOTHING = SeenJob(
    arriving_rate=None, read_rate=None, lag_records=None, lag_s=None, tasks=None, slots=None, slots_there=None,
    state_mb=None, staleness_s=None, interval_s=None, vertices={},
)  # fmt: skip


def decision(number: int, at: datetime = NOON) -> AutopilotDecision:
    return AutopilotDecision(
        job="clicks",
        number=number,
        fence=1,
        decided_at=at,
        flink_job=None,
        policy="ds2",
        seen=NOTHING,
        advice=PolicyAdvice(reason="It keeps up.", parallelism=None),
        done="none",
        reason="It keeps up.",
        decision_s=0.01,
    )


def state() -> AutopilotState:
    return AutopilotState(
        job="clicks",
        flink_url="http://127.0.0.1:8081",
        flink_name="Clicks",
        policy="ds2",
        settings={},
        dry_run=False,
        limits=ControlLimits(),
        phase="observing",
        fence=1,
        holder="process 1 on here",
        started_at=NOON,
        beat_at=NOON,
        every_s=10.0,
        rescales_in_a_day=0,
        rolled_back_in_a_day=0,
        newest=decision(2),
    )


@pytest.fixture
def files(tmp_path: Path) -> AutopilotFiles:
    return AutopilotFiles(Workspace(tmp_path), "clicks")


def test_decisions_come_back_in_the_order_of_their_numbers(files: AutopilotFiles) -> None:
    for number, days in ((10, 1), (9, 1), (2, 0), (1, 0)):
        files.keep(decision(number, NOON + timedelta(days=days)))
    assert [one.number for one in files.decisions()] == [1, 2, 9, 10]
    assert [one.number for one in files.decisions(after=2)] == [9, 10]
    assert files.newest_number() == 10


def test_decisions_since_a_time(files: AutopilotFiles) -> None:
    now = datetime.now(UTC)
    for number, hours in ((1, 30), (2, 2), (3, 0)):
        files.keep(decision(number, now - timedelta(hours=hours)))
    assert [one.number for one in files.decisions(since=now - timedelta(hours=3))] == [2, 3]


def test_a_decision_is_stored_once(files: AutopilotFiles) -> None:
    files.keep(decision(1))
    with pytest.raises(FileExistsError):
        files.keep(decision(1))


def test_the_first_one_to_stop_an_autopilot_is_named(files: AutopilotFiles) -> None:
    assert files.switch() is None
    first = StopSwitch(job="clicks", by="ada", reason="a release", stopped_at=NOON)
    assert files.stop(first) == first
    assert files.stop(StopSwitch(job="clicks", by="bob", stopped_at=NOON)) == first
    assert files.switch() == first
    assert files.resume()
    assert not files.resume()
    assert files.switch() is None


def test_jobs_with_an_autopilot_are_listed_without_reading_their_decisions(files: AutopilotFiles) -> None:
    assert autopilot_jobs(files.workspace) == [] and files.state() is None
    files.keep_state(state())
    files.stop(StopSwitch(job="clicks", by="ada", stopped_at=NOON))
    assert autopilot_jobs(files.workspace) == ["clicks"]
    assert files.state() == state()
