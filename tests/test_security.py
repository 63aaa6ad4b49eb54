"""What must never happen: code run from data, paths that leave their place, servers that listen to the world."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.errors import InvalidInput, SluiceError
from models.job import Job
from pipelines.cli.plans.plan_reference import parse_reference
from pipelines.inputs.parsing.files import validate_as
from pipelines.inputs.plan_request import PlanRequest
from pipelines.store.workspace import Workspace
from sluice_airflow.places import FILES_VARIABLE
from sluice_airflow.tasks import evaluation, planning, replanning

ROOMS = ("flink_client", "models", "pipelines", "spark", "testbeds", "plugins", "dags", "docker")
RUNS_DATA = "S102,S301,S302,S307,S506,S602,S604,S605,S609"
"""Ruff's rules against exec, pickle, marshal, eval, yaml.load, and shells."""
LEAVING = ("../secret", "..", "/etc/passwd", "a/../../b", "~/x", "a/b", ".hidden", "a\x00b", "")


def test_nothing_runs_data_as_code_and_no_exception_is_made(root: Path) -> None:
    ruff = [str(Path(sys.executable).with_name("ruff")), "check", "--isolated", "--ignore-noqa", "--select", RUNS_DATA]
    done = subprocess.run([*ruff, *(str(root / room) for room in ROOMS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_ruff_holds_its_security_rules_in_all_packages(root: Path) -> None:
    text = (root / "pyproject.toml").read_text()
    assert '"S"' in re.search(r"^select = \[(.*)\]$", text, re.MULTILINE).group(1)
    ignored = re.search(r"^ignore = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL).group(1)
    for line in ignored.splitlines():
        if '"S' in line:
            assert len(line.partition("#")[2]) > 30, f"an ignored rule needs its reason: {line}"


@pytest.mark.parametrize("name", LEAVING)
def test_names_cannot_be_paths(root: Path, name: str) -> None:
    job = yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text())
    refused: list[Callable[[], Any]] = [
        lambda: validate_as(job | {"name": name}, Job, "a job file"),
        lambda: validate_as(job | {"sql": name}, Job, "a job file"),
        lambda: validate_as({"job": "q", "rate": 1.0, "run": name}, PlanRequest, "a request"),
        lambda: parse_reference(name),
    ]
    for call in refused:
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize("key", ["../secret", "/etc/passwd", "a/../../b", "a//b", ".hidden/x", "a/.b", "a\x00b", ""])
def test_keys_cannot_leave_the_workspace(tmp_path: Path, key: str) -> None:
    workspace = Workspace(tmp_path / "workspace")
    for call in (workspace.read_bytes, workspace.exists, workspace.delete):
        with pytest.raises(InvalidInput):
            call(key)
    for write in (workspace.write_bytes, workspace.create_bytes):
        with pytest.raises(InvalidInput):
            write(key, b"x")
    assert list(tmp_path.iterdir()) == []


def test_links_cannot_leave_the_workspace(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("kept")
    workspace = Workspace(tmp_path / "workspace")
    workspace.write_bytes("a", b"x")
    (tmp_path / "workspace" / "folder").symlink_to(outside)
    (tmp_path / "workspace" / "file").symlink_to(outside / "secret")
    refused: list[Callable[[], Any]] = [
        lambda: workspace.read_bytes("folder/secret"),
        lambda: workspace.read_bytes("file"),
        lambda: workspace.write_bytes("folder/new", b"x"),
        lambda: workspace.write_bytes("folder/secret", b"x"),
        lambda: workspace.create_bytes("folder/new", b"x"),
        lambda: workspace.delete("folder/secret"),
    ]
    for call in refused:
        with pytest.raises(SluiceError, match="outside the workspace"):
            call()
    assert {path.name: path.read_text() for path in outside.iterdir()} == {"secret": "kept"}


@pytest.fixture
def workspace_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    monkeypatch.setenv("SLUICE_WORKSPACE", str(folder))
    monkeypatch.delenv(FILES_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.mark.parametrize("field", ["job", "cluster", "measurements"])
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../outside.yaml", "outside.yaml", "workspace/../outside.yaml", "workspace/link.yaml"]
)
def test_a_request_through_airflow_cannot_name_files_elsewhere(workspace_folder: Path, field: str, path: str) -> None:
    secret = workspace_folder.parent / "outside.yaml"
    secret.write_text("password: hunter2\n")
    (workspace_folder / "link.yaml").symlink_to(secret)
    asked = {"job": "nexmark-q1", "rate": 1000.0, "run": None, field: path}
    with pytest.raises(InvalidInput, match=f"the parameter '{field}' must name a file in") as refused:
        planning.keep_request(asked)
    assert "hunter2" not in str(refused.value)
    assert list(workspace_folder.iterdir()) == [workspace_folder / "link.yaml"]


@pytest.mark.parametrize(
    "fields", [{"jobs": ["/etc/passwd"]}, {"workloads": ["/etc/passwd:root"]}, {"cluster": "/etc/passwd"}]
)
def test_an_evaluation_through_airflow_cannot_either(workspace_folder: Path, fields: dict[str, Any]) -> None:
    asked = {"jobs": ["nexmark-q1"], "workloads": ["steps"], "policies": ["ds2"], **fields}
    with pytest.raises(InvalidInput, match="must name a file in"):
        evaluation.keep_request(asked)


def test_files_of_the_catalogue_the_workspace_and_the_folders_listed_may_be_named(
    workspace_folder: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (root / "jobs" / "wordcount.yaml").read_text()
    (workspace_folder / "mine.yaml").write_text(text)
    (tmp_path / "listed").mkdir()
    (tmp_path / "listed" / "mine.yaml").write_text(text)
    monkeypatch.setenv(FILES_VARIABLE, f"/nowhere:{tmp_path / 'listed'}")
    for place in (root / "jobs" / "wordcount.yaml", workspace_folder / "mine.yaml", tmp_path / "listed" / "mine.yaml"):
        assert planning.keep_request({"job": str(place), "rate": 1000.0, "run": None}).startswith("file://")


@pytest.mark.parametrize("job", ["../../etc", "/etc/passwd", "a/b", ".."])
def test_a_rate_change_cannot_name_a_path(workspace_folder: Path, job: str) -> None:
    (change,) = replanning.rate_changes({}, [{"job": job, "rate": 1000.0}], "a-dag-run")
    with pytest.raises(InvalidInput):
        replanning.replan(change, datetime.now(UTC))


def test_no_module_listens_on_all_interfaces(root: Path) -> None:
    """Containers do, behind ports that compose publishes on loopback; nothing that is started on a machine does."""
    rooms = [room for room in ROOMS if room != "docker"]
    files = [path for room in rooms for path in (root / room).rglob("*.py")]
    assert [str(path) for path in files if re.search(r"0\.0\.0\.0|\(\(\"\", ", path.read_text())] == []
    assert "AIRFLOW__API__HOST := 127.0.0.1" in (root / "Makefile").read_text()


def test_what_holds_secrets_is_readable_by_its_owner_alone(root: Path) -> None:
    secret = root / ".sluice" / "airflow" / "jwt-secret"
    if secret.exists():
        assert secret.stat().st_mode & 0o077 == 0
