import json
from pathlib import Path

import pytest

from flight import Flight
from pipelines.cli import run
from pipelines.store.workspace import Workspace
from steered_flink import SimulatedClock, SteeredFlink, SteeredJob

STATED = ["--policy", "ds2", "--set", "policy_interval_s=5", "--limit", "settle_s=5", "--for", "1s"]


@pytest.fixture
def flight(tmp_path: Path) -> Flight:
    clock = SimulatedClock()
    job = SteeredJob(clock)
    with SteeredFlink(job) as flink:
        yield Flight(clock, job, flink, Workspace(tmp_path))


def test_decisions_are_printed_one_a_line_and_logged(flight: Flight, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["autopilot", "clicks", "--flink", flight.flink.url, "--workspace", flight.workspace.url]
    assert run([*command, *STATED, "--json", "--dry-run"]) == 0
    printed, said = capsys.readouterr()
    (decision,) = map(json.loads, printed.splitlines())
    assert (decision["job"], decision["held"], decision["policy"]) == ("clicks", "restarting", "ds2")
    assert "dry run of policy ds2 for clicks" in said and "clicks keeps running as it is" in said
    assert flight.flink.changes == []
    assert run(["autopilot", "log", "clicks", "--json", "--workspace", flight.workspace.url]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [decision]
    assert run(["autopilot", "log", "clicks", "--workspace", flight.workspace.url]) == 0
    assert "6 tasks  none (restarting): a task has run for" in capsys.readouterr().out


def test_it_is_stopped_and_started(flight: Flight, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--workspace", flight.workspace.url]
    assert run(["autopilot", "stop", "clicks", *place]) == 2
    assert "no autopilot has run for 'clicks' in this workspace; there are none" in capsys.readouterr().err
    run(["autopilot", "clicks", "--flink", flight.flink.url, *STATED, *place])
    capsys.readouterr()
    assert run(["autopilot", "stop", "clicks", "--by", "ada", "--reason", "a release", "--json", *place]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == "ada"
    assert run(["autopilot", "start", "clicks", *place]) == 0
    assert capsys.readouterr().out == "clicks: its autopilot may act again\n"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--limit", "most_taks=3"], "most_taks"),
        (["--limit", "most_tasks"], "--limit must be LIMIT=VALUE"),
        (["--freeze", "8 to 10"], "freeze"),
        (["--policy", "best"], "there is no policy 'best'"),
        (["--as", "a b"], "--as must be letters"),
    ],
)
def test_wrong_options_are_named(
    flight: Flight, arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["autopilot", "clicks", "--flink", flight.flink.url, "--workspace", flight.workspace.url, "--for", "1s"]
    assert run([*command, *arguments]) == 2
    assert why in capsys.readouterr().err
