"""The tasks that measure: when a process is started, when one is joined, and what each outcome makes of the task."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowTaskTimeout, TaskDeferred
from airflow.triggers.base import TaskSuccessEvent, TriggerEvent

from models.errors import InvalidInput, SluiceError
from pipelines.detached.attempts import Attempt, Attempts, Outcome
from pipelines.inputs.plan_request import PlanRequest
from pipelines.progress import Quiet
from pipelines.run import PipelineRun
from pipelines.stages import run_stage_at
from pipelines.store.workspace import Workspace
from sluice_airflow import reporting
from sluice_airflow.measuring import stage as measuring
from sluice_airflow.measuring.connections import connection_variables
from sluice_airflow.measuring.stage import MEASURE_IN, MeasuringStage, StageEnded
from sluice_airflow.measuring.trigger import StageTrigger
from workspaces.transcript import Transcript

REQUEST = PlanRequest(job="nexmark-q1", rate=400_000.0)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """URI of a request that is stored."""
    return PipelineRun(REQUEST, Workspace(tmp_path / "workspace")).start()


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the attempts that were begun, in place of their processes."""
    numbers: list[int] = []
    monkeypatch.setattr(MeasuringStage, "_start", lambda self, number: numbers.append(number))
    return numbers


def _task(uri: str, name: str = "profile") -> MeasuringStage:
    with DAG("measuring", schedule=None):
        return MeasuringStage(task_id=name, request_uri=uri, previous_uri=uri, limit=timedelta(hours=6))


def _deferred(task: MeasuringStage) -> StageTrigger:
    with pytest.raises(TaskDeferred) as raised:
        task.execute({})
    assert raised.value.method_name == "execute_complete" and isinstance(raised.value.trigger, StageTrigger)
    return raised.value.trigger


def _newest(uri: str) -> Attempt:
    newest = Attempts(uri, "profile").newest()
    assert newest is not None
    return newest


def _after(uri: str, kind: str, text: str = "why") -> Any:
    """What the task makes of an outcome."""
    _deferred(_task(uri))
    _newest(uri).end(Outcome.model_validate({"kind": kind, "text": text}))
    return _task(uri).execute_complete({}, 1)


def test_a_second_start_joins_the_process_of_the_first(uri: str, started: list[int]) -> None:
    first, second = _deferred(_task(uri)), _deferred(_task(uri))
    assert (first.number, second.number, started) == (1, 1, [1])
    assert _newest(uri).record.limit_s == 6 * 3600.0


def test_the_result_is_the_uri_of_the_output(uri: str, started: list[int]) -> None:
    assert _after(uri, "done", "file:///w/profile.json") == "file:///w/profile.json"


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        ("refused", SluiceError, "^why$"),
        ("failed", StageEnded, "^profile: why$"),
        ("lost", StageEnded, "^profile: why$"),
        ("timed-out", AirflowTaskTimeout, "^profile: why; the next try resumes from what it measured$"),
    ],
)
def test_a_task_fails_as_its_process_did_and_the_next_try_begins_another(
    uri: str, started: list[int], kind: str, error: type[BaseException], message: str
) -> None:
    with pytest.raises(error, match=message):
        _after(uri, kind)
    assert not issubclass(StageEnded, SluiceError), "such errors are tried again"
    assert _deferred(_task(uri)).number == 2
    assert started == [1, 2]


def test_a_task_that_outlives_the_stop_of_its_process_measures_on(uri: str, started: list[int]) -> None:
    with pytest.raises(TaskDeferred):
        _after(uri, "stopped")
    assert started == [1, 2]


def test_a_task_that_is_killed_before_it_waits_stops_its_process(uri: str, started: list[int]) -> None:
    task = _task(uri)
    task.on_kill()
    _deferred(task)
    assert _newest(uri).is_open
    task.on_kill()
    assert _newest(uri).is_to_stop


def test_the_embedded_airflow_and_a_setting_measure_in_the_task(
    tmp_path: Path, started: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: list[Any] = []
    for way in ("terminal", "setting"):
        uri = PipelineRun(REQUEST, Workspace(tmp_path / way)).start()
        with pytest.MonkeyPatch.context() as patch:
            if way == "setting":
                patch.setenv(MEASURE_IN, "task")
            else:
                patch.setattr(reporting, "_on_terminal", Transcript())
            ways.append(_task(uri).execute({}).rpartition("/runs/")[2])
    assert ways[0] == ways[1] and ways[0].endswith("/profile.json")
    assert started == []


def test_a_wrong_setting_is_refused(uri: str, started: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MEASURE_IN, "cloud")
    with pytest.raises(InvalidInput, match="SLUICE_MEASURE_IN must be 'process' or 'task', but is 'cloud'"):
        _task(uri).execute({})


def test_published_measurements_need_no_process(root: Path, tmp_path: Path, started: list[int]) -> None:
    measurements = str(root / "tests" / "data" / "streambed" / "search_q1.csv")
    request = PlanRequest(job="nexmark-q1", rate=1.0, testbed="recorded", measurements=measurements)
    uri = PipelineRun(request, Workspace(tmp_path / "workspace")).start()
    assert _task(uri, "explore").execute({}).endswith("/exploration.json")
    assert started == []


def _events(trigger: StageTrigger) -> list[TriggerEvent]:
    async def all_of_them() -> list[TriggerEvent]:
        return [event async for event in trigger.run()]

    return asyncio.run(asyncio.wait_for(all_of_them(), 60))


def test_a_trigger_is_made_again_from_what_it_says_of_itself(uri: str) -> None:
    path, given = StageTrigger(uri, "profile", 3, look_every_s=7.0).serialize()
    assert path == f"{StageTrigger.__module__}.{StageTrigger.__qualname__}"
    assert StageTrigger(**given).serialize() == (path, given)


def test_the_trigger_copies_the_lines_to_the_log_and_ends_the_task(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    attempt = Attempts(uri, "profile").of(1)
    attempt.say(("one", "two"))
    attempt.beat(2)
    attempt.end(Outcome(kind="done", text="file:///w/profile.json"))
    with caplog.at_level("INFO", logger="sluice"):
        (event,) = _events(StageTrigger(uri, "profile", 1, look_every_s=0.01))
    assert caplog.messages == ["one", "two"]
    assert isinstance(event, TaskSuccessEvent)


def test_after_any_other_end_the_task_itself_goes_on(uri: str, caplog: pytest.LogCaptureFixture) -> None:
    Attempts(uri, "profile").of(1).end(Outcome(kind="failed", text="KeyError: 'x'"))
    with caplog.at_level("INFO", logger="sluice"):
        (event,) = _events(StageTrigger(uri, "profile", 1, look_every_s=0.01))
    assert not isinstance(event, TaskSuccessEvent) and event.payload == 1
    assert caplog.messages == ["profile: KeyError: 'x'"]


def test_clearing_a_task_stops_its_process_and_a_restart_of_the_triggerer_does_not(uri: str) -> None:
    attempt = Attempts(uri, "profile").of(1)
    attempt.begin(60.0)
    trigger = StageTrigger(uri, "profile", 1)
    asyncio.run(trigger.cleanup())
    assert attempt.is_open
    asyncio.run(trigger.on_kill())
    assert attempt.is_to_stop


def test_a_process_gets_the_connections_that_its_run_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MY_FLINK", '{"host": "https://flink.example:8081", "password": "s3cr3t"}')
    asked = {"job": "nexmark-q1", "rate": 1.0, "testbed": "flink", "cluster": "flink-local"}
    workspace = Workspace(tmp_path)
    named = PipelineRun(PlanRequest.model_validate(asked | {"flink": "connection:my-flink"}), workspace)
    workspace.write("runs/nexmark-q1/named/request.json", named.request)
    found = connection_variables(workspace.uri("runs/nexmark-q1/named/request.json"))
    assert list(found) == ["AIRFLOW_CONN_MY_FLINK"] and '"password": "s3cr3t"' in found["AIRFLOW_CONN_MY_FLINK"]
    workspace.write("runs/nexmark-q1/local/request.json", PlanRequest.model_validate(asked))
    assert connection_variables(workspace.uri("runs/nexmark-q1/local/request.json")) == {}


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[psutil.Process]]:
    """The processes of the stages of a test, which are ended after it."""
    from pipelines.detached import starting

    found: list[psutil.Process] = []
    start = starting.start_process

    def kept(*arguments: Any) -> Any:
        process = start(*arguments)
        found.append(psutil.Process(process.pid))
        return process

    monkeypatch.setattr(starting, "start_process", kept)
    yield found
    for process in found:
        if process.is_running():
            process.kill()


@pytest.mark.slow
def test_the_process_of_a_task_makes_what_the_task_would_have_made(
    uri: str, tmp_path: Path, processes: list[psutil.Process], caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(measuring, "_log_file", lambda *_: tmp_path / "output.log")
    trigger = _deferred(_task(uri))
    with caplog.at_level("INFO", logger="sluice"):
        (event,) = _events(trigger)
    assert isinstance(event, TaskSuccessEvent)
    result = _task(uri).execute_complete({}, event.payload)  # as `dag.test` resumes it
    assert result == run_stage_at("profile", uri, Quiet())
    assert any(line.startswith("profile: one task of each operator saturates") for line in caplog.messages)
    assert len(processes) == 1
