"""`sluice calibrate` as people and machines call it."""

import json
from pathlib import Path

import pytest
import yaml

from pipelines.cli import run
from pipelines.inputs.catalogue import load_cluster, load_job

CLUSTER = {"name": "pair", "count": 2, "slots": 4, "cores": 2, "memory_mb": 8192}


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "pair.yaml"
    path.write_text(yaml.safe_dump(CLUSTER), encoding="utf-8")
    return path


def test_people_get_tables_and_files_and_machines_one_document(
    tmp_path: Path, cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, folder = tmp_path / "mine.yaml", str(tmp_path / "workspace")
    command = ["calibrate", "nexmark-q1", "--testbed", "simulator", "--cluster", str(cluster), "--workspace", folder]
    options = ["--memory", "8192", "--configurations", "2", "--held-out", "1"]
    assert run([*command, *options, "--output", str(output)]) == 0
    out, err = capsys.readouterr()
    assert all(word in out for word in ("calc", "held out", "uncalibrated", "median absolute relative error"))
    assert "2 of 2: " in err and f"written: {output}" in err
    assert load_job(output).name == "nexmark-q1"
    assert load_cluster(tmp_path / "mine.cluster.yaml").slots == 8

    assert run([*command, *options, "--json"]) == 0
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert [one["role"] for one in document["comparisons"]] == ["calibration", "held out"]
    assert document["job"]["name"] == "nexmark-q1"
    assert "warming up" not in err


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["nexmark-q1", "--testbed", "moon"], 2, "flink or simulator"),
        (["nexmark-q1", "--output", "mine.txt"], 2, "must end in"),
        (["nexmark-q1", "--configurations", "1"], 2, "'configurations'"),
        (["nexmark-q1", "--held-out", "4"], 2, "must not be held out"),
        (["nexmark-q11x"], 2, "nexmark-q11"),
        (["nexmark-q1", "--testbed", "simulator", "--most-tasks", "2", "--configurations", "8"], 3, "task slots"),
    ],
)
def test_wrong_requests_are_reported_in_words(
    options: list[str], code: int, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["calibrate", *options, "--memory", "8192", "--workspace", str(tmp_path)]) == code
    out, err = capsys.readouterr()
    assert (out, message in err, "Traceback" in err) == ("", True, False)
