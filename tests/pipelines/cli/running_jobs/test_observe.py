"""`sluice observe` and `sluice plan --from-running` against a server that answers as Flink does."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flink.observed import COUNT, JOB_ID, ObservedFlink
from flink.scraping_prometheus import Scraping
from pipelines.cli import run
from pipelines.cli.options import duration
from pipelines.cli.output import console
from pipelines.inputs.catalogue import load_job
from pipelines.observe import watching


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(watching, "LEAST_PAUSE_S", 0.05)
    monkeypatch.setattr(duration, "LEAST_S", 0.1)
    monkeypatch.setattr("pipelines.cli.running_jobs.observe.LEAST_S", 0.1)
    monkeypatch.setattr("pipelines.cli.plans.plan.LEAST_S", 0.1)
    monkeypatch.setattr(console, "width", 200)
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "workspace"))


@pytest.fixture
def flink() -> Iterator[ObservedFlink]:
    with ObservedFlink() as server:
        yield server


def test_people_see_a_table_what_binds_and_how_far_it_goes(
    flink: ObservedFlink, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    written = tmp_path / "fraud.yaml"
    assert run(["observe", "--flink", flink.url, "--for", "0.8", "--write-job", str(written)]) == 0
    printed = capsys.readouterr().out
    assert f"Fraud detection ({JOB_ID})" in printed
    row = next(line for line in printed.splitlines() if line.strip().startswith("count"))
    assert row.split()[1:3] == ["2", "600"]
    assert "bound by count, hot key" in printed
    assert "as deployed it takes 1,000 records/s" in printed
    assert load_job(written).name == "Fraud-detection"


def test_a_job_file_that_cannot_be_written_is_refused_before_the_job_is_observed(
    flink: ObservedFlink, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    missing = tmp_path / "missing" / "fraud.yaml"
    assert run(["observe", "--flink", flink.url, "--for", "1h", "--write-job", str(missing)]) == 2
    assert f"there is none at {missing.parent}" in capsys.readouterr().err


def test_machines_get_one_document(flink: ObservedFlink, capsys: pytest.CaptureFixture[str]) -> None:
    flink.pending = None
    assert run(["observe", "--flink", flink.url, "--job", JOB_ID, "--for", "0.8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [v["parallelism"] for v in found["vertices"]] == [1, 2, 2]
    assert found["lag_records"] is None
    assert found["arriving_rate"] == pytest.approx(600)
    assert found["bound_by"]["vertex"] == "count"


def test_the_past_is_shown_at_once(flink: ObservedFlink, capsys: pytest.CaptureFixture[str]) -> None:
    with Scraping() as prometheus:
        arguments = ["observe", "--flink", flink.url, "--prometheus", prometheus.url, "--for", "60", "--json"]
        began_s = time.monotonic()
        assert run(arguments) == 0
        assert time.monotonic() - began_s < 60
        found = json.loads(capsys.readouterr().out)
        assert found["observed_s"] == pytest.approx(60, abs=1)
        assert [v["observed_rate"] for v in found["vertices"]] == pytest.approx([600, 600, 600])
        assert [v["busyness"] for v in found["vertices"]] == pytest.approx([0.6, 0.6, 0.6])
        assert (found["lag_records"], found["arriving_rate"]) == pytest.approx((25, 600))
        assert found["checkpoints"]["state_bytes"] == 4096
        assert run([*arguments, "--kafka", "b:9092"]) == 2
    assert "--prometheus reads the past" in capsys.readouterr().err


def test_a_running_job_is_planned(flink: ObservedFlink, capsys: pytest.CaptureFixture[str]) -> None:
    flink.busy[COUNT], flink.share = (0.4, 0.4), (0.5, 0.5)
    arguments = ["plan", "--from-running", "--flink", flink.url, "--rate", "6000", "--headroom", "1", "--for", "0.8"]
    assert run([*arguments, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert {o["name"]: o["parallelism"] for o in plan["operators"]}["count"] == 8
    assert sorted(plan["placement"]) == ["taskmanager-2", "tm1"]  # the one that runs, and one more
    assert plan["bound_by"]["vertex"] is not None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["observe", "--flink", "{url}", "--job", "other"], "running jobs: 'Fraud detection'"),
        (["observe", "--flink", "{url}", "--for", "soon"], "a duration must be like 90s, 3m or 1h"),
        (["plan", "--from-running", "--rate", "10"], "--from-running needs --flink"),
        (["plan", "--from-running", "--flink", "{url}", "--rate", "10", "--model", "log"], "leave out --model"),
        (["plan", "--rate", "10"], "JOB must be given"),
        (["plan", "nexmark-q1", "--rate", "10", "--job", "x"], "--job names a running job, and needs --from-running"),
        (["plan", "nexmark-q1", "--rate", "10", "--testbed", "running"], "plan it with `sluice plan --from-running"),
    ],
)
def test_wrong_arguments_are_reported_in_words(
    flink: ObservedFlink, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([one.format(url=flink.url) for one in arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_token_is_sent_and_a_missing_one_is_named(
    flink: ObservedFlink, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["observe", "--flink", flink.url, "--for", "0.3", "--token-variable", "FLINK_TOKEN", "--json"]
    assert run(arguments) == 1
    assert "FLINK_TOKEN must hold a token" in capsys.readouterr().err
    monkeypatch.setenv("FLINK_TOKEN", "open-sesame")
    flink.token = "open-sesame"
    assert run(arguments) == 0
    flink.token = "another"
    assert run(arguments) == 1
    assert "401" in capsys.readouterr().err
