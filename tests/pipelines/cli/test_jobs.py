import json
from pathlib import Path

import pytest
import yaml

from models.cluster import WorkerOffer
from pipelines.cli import run
from pipelines.cli.output import console
from pipelines.inputs.catalogue import cluster_names, job_names, load_cluster, load_cluster_or_offer, load_job
from pipelines.inputs.job_files import ClusterFile, JobFile


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 200)


def test_jobs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in job_names())
    assert "hot items" in printed


def test_jobs_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["jobs"]
    assert [job["name"] for job in listed] == job_names()
    q5 = next(job for job in listed if job["name"] == "nexmark-q5")
    assert (q5["operators"], q5["stateful"]) == (10, 3)


def test_a_job_is_shown_with_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "show", "nexmark-q5"]) == 0
    printed = capsys.readouterr().out
    window = next(line for line in printed.splitlines() if line.strip().startswith("count-window"))
    assert "bids (hash)" in window and " 22 " in window and "0.3868" in window and "504" in window
    assert "count-window: StreamBed's published grid of q5" in printed


def test_a_job_as_json_is_a_job_file_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["jobs", "show", "nexmark-q5", "--json"]) == 0
    assert JobFile.model_validate_json(capsys.readouterr().out) == load_job("nexmark-q5")


def test_a_program_is_listed_and_shown_without_operators(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "visits.yaml").write_text("name: visits\nsql: visits.sql\ntables: {clicks: {file: c.csv}}\n")
    monkeypatch.setenv("SLUICE_CATALOGUE", str(tmp_path))
    assert run(["jobs", "show", "visits"]) == 0 and "clicks: replayed from c.csv" in capsys.readouterr().out
    assert run(["jobs", "list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["jobs"]
    assert listed["name"] == "visits" and listed["operators"] is None


def test_clusters_are_listed_and_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["clusters", "list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in cluster_names())
    assert run(["clusters", "show", "testbed"]) == 0
    assert "3: tm-1 ... tm-3" in capsys.readouterr().out
    assert run(["clusters", "list", "--json"]) == 0
    assert [c["slots"] for c in json.loads(capsys.readouterr().out)["clusters"] if c["name"] == "production"] == [2048]
    assert run(["clusters", "show", "capsys-4x4", "--json"]) == 0
    assert ClusterFile.model_validate_json(capsys.readouterr().out) == load_cluster("capsys-4x4")


def test_the_kinds_of_an_offer_are_shown_with_their_prices(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "clusters" / "cloud.yaml"
    path.parent.mkdir()
    path.write_text(
        "name: cloud\nkinds: [{name: a, slots: 2, price_per_hour: 0.25}, {name: b, slots: 3, count: 4, price_per_hour: 1}]"
    )
    assert run(["clusters", "show", str(path)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[3].split() == ["a,", "any", "number", "2", *["no", "limit"] * 4, "0.25"]
    assert printed[4].split() == ["b,", "at", "most", "4", "3", *["no", "limit"] * 4, "1.00"]
    assert run(["clusters", "show", str(path), "--json"]) == 0
    assert WorkerOffer.model_validate_json(capsys.readouterr().out) == load_cluster_or_offer(path)


def test_an_offer_of_the_catalogue_has_no_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "clusters").mkdir()
    (tmp_path / "clusters" / "cloud.yaml").write_text("{name: cloud, kinds: [{name: a, slots: 2}]}")
    monkeypatch.setenv("SLUICE_CATALOGUE", str(tmp_path))
    assert run(["clusters", "list"]) == 0 and "cloud" in capsys.readouterr().out
    assert run(["clusters", "list", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["clusters"]
    assert (listed["workers"], listed["slots"]) == (None, None)


def test_a_capacity_that_is_absent_is_no_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text("workers: [{name: a, slots: 2}, {name: b, slots: 3, cores: 2}]")
    assert run(["clusters", "show", str(tmp_path / "c.yaml")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[3].split() == ["a", "2", *["no", "limit"] * 4]
    assert printed[4].split()[:3] == ["b", "3", "2"]


def test_a_wrong_file_is_exit_code_2_and_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "j.yaml").write_text("name: mine\n")
    assert run(["jobs", "show", str(tmp_path / "j.yaml"), "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "field 'description' is missing" in printed.err
    assert run(["clusters", "show", "testbd"]) == 2
    assert "did you mean 'testbed'" in capsys.readouterr().err


def test_the_vertices_of_a_job_are_shown(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text())
    document["vertices"] = [{"operators": ["count"], "slot_sharing_group": "heavy"}]
    (tmp_path / "wordcount.yaml").write_text(yaml.safe_dump(document))
    assert run(["jobs", "show", str(tmp_path / "wordcount.yaml")]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith("vertex")] == [
        "vertex source: group default",
        "vertex flatmap: group default",
        "vertex count: group heavy",
    ]


def test_waits_outside_the_job_stand_beside_its_cpu_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = load_job("wordcount").model_dump(mode="json", by_alias=True, exclude_none=True)
    document["operators"][1]["cost"]["external_wait_s"] = 0.008
    (tmp_path / "wordcount.yaml").write_text(yaml.safe_dump(document))
    assert run(["jobs", "show", str(tmp_path / "wordcount.yaml")]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert next(row for row in rows if row[:1] == ["flatmap"])[3:6] == ["600", "+", "8000"]
