import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autopilots.flight import Flight
from flink.steered import SimulatedClock, SteeredFlink, SteeredJob
from on_kubernetes.server import PLANNER, READER
from on_kubernetes.steered_operator import REFERENCE, SteeredOperator
from pipelines.cli import run
from pipelines.store.workspace import Workspace

STATED = ["--policy", "ds2", "--set", "policy_interval_s=5", "--limit", "settle_s=5", "--for", "3s"]


@pytest.fixture
def flight(tmp_path: Path) -> Iterator[Flight]:
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
    time.sleep(1.1)
    assert run(["autopilot", "log", "clicks", "--since", "1s", "--workspace", flight.workspace.url]) == 0
    assert capsys.readouterr() == ("", "autopilot: no decision was recorded for clicks in the last 1s\n")


@pytest.mark.parametrize("partitioned", [True, False])
def test_it_says_that_what_waits_in_kafka_is_estimated_without_a_broker(
    flight: Flight, partitioned: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    flight.job.partitioned = partitioned
    run(["autopilot", "clicks", "--flink", flight.flink.url, *STATED, "--dry-run", "--workspace", flight.workspace.url])
    assert capsys.readouterr().err.count("--kafka HOST:PORT has the broker count it") == partitioned


def test_a_job_that_was_never_seen_is_a_failure(flight: Flight, capsys: pytest.CaptureFixture[str]) -> None:
    nowhere = ["autopilot", "clicks", "--flink", "http://127.0.0.1:9", "--workspace", flight.workspace.url]
    assert run([*nowhere, *STATED]) == 1
    assert "failed: the autopilot of clicks ended without having seen it run: " in capsys.readouterr().err


def test_it_is_stopped_and_started(flight: Flight, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--workspace", flight.workspace.url]
    assert run(["autopilot", "stop", "clicks", *place]) == 2
    assert "no autopilot has run for 'clicks' in this workspace; there are none" in capsys.readouterr().err
    run(["autopilot", "clicks", "--flink", flight.flink.url, *STATED, *place])
    capsys.readouterr()
    assert run(["autopilot", "stop", "clicks", "--by", "ada", "--reason", "a release", "--json", *place]) == 0
    assert json.loads(capsys.readouterr().out)["by"] == "ada"
    assert run(["autopilot", "stop", "clicks", "--by", "bob", "--reason", "another", *place]) == 0
    again = capsys.readouterr()
    assert again.out.startswith("clicks: stopped by ada at")
    assert "clicks had been stopped before (a release), which stays" in again.err
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
        (["--context", "prod"], "--context and --through are for a FlinkDeployment"),
        (["--kubernetes", "clicks"], "--kubernetes must be NAMESPACE/NAME"),
        (["--kubernetes", "a/b", "--through", "kubectl"], "--through must be operator or rest"),
        (["--kubernetes", "a/b", "--program", "p.yaml"], "--program is for jobs without --kubernetes"),
    ],
)
def test_wrong_options_are_named(
    flight: Flight, arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["autopilot", "clicks", "--flink", flight.flink.url, "--workspace", flight.workspace.url, "--for", "1s"]
    assert run([*command, *arguments]) == 2
    assert why in capsys.readouterr().err


@pytest.fixture
def operator(flight: Flight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SteeredOperator]:
    made = SteeredOperator(flight.job, flight.clock)
    with made.server:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig(tmp_path, PLANNER)))
        yield made


def test_the_flinkdeployment_is_checked_at_the_begin(
    flight: Flight,
    operator: SteeredOperator,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["autopilot", "clicks", "--flink", flight.flink.url, "--workspace", flight.workspace.url, *STATED]
    assert run([*command, "--kubernetes", REFERENCE, "--context", "test"]) == 0
    assert f"(FlinkDeployment {REFERENCE})" in capsys.readouterr().err
    assert operator.server.verbs == ["get", "dry-run"] and operator.generation == 1
    assert run([*command, "--kubernetes", "streaming/other"]) == 2
    assert "there is no FlinkDeployment streaming/other" in " ".join(capsys.readouterr().err.split())
    monkeypatch.setenv("KUBECONFIG", str(operator.kubeconfig(tmp_path, READER)))
    assert run([*command, "--kubernetes", REFERENCE]) == 1
    assert "the right to patch flinkdeployments" in " ".join(capsys.readouterr().err.split())


def test_the_owner_by_flinks_settings_is_named(
    flight: Flight, operator: SteeredOperator, capsys: pytest.CaptureFixture[str]
) -> None:
    flight.flink.settings = {
        "kubernetes.jobmanager.owner.reference": "kind:FlinkDeployment,name:wordcount,controller:false",
        "kubernetes.namespace": "streaming",
    }
    command = ["autopilot", "clicks", "--flink", flight.flink.url, "--workspace", flight.workspace.url, *STATED]
    assert run([*command, "--kubernetes", "streaming/other"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"FlinkDeployment {REFERENCE} deploys the Flink at {flight.flink.url}, and not streaming/other" in said
    assert run([*command, "--dry-run"]) == 0
    assert f"name it (--kubernetes {REFERENCE}) to have them kept" in " ".join(capsys.readouterr().err.split())
