"""A run that is killed at any stage and started again ends in the same plan, and repeats no finished measurement."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from models.plan import Plan
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

pytestmark = pytest.mark.slow

ARGUMENTS = ["plan", "wordcount", "--rate", "30000", "--max-slots", "12", "--max-measurements", "3", "--run", "r"]
KILLED_AT = (
    "request.json",
    "profile.json",
    "observations/m002.json",
    "exploration.json",
    "checks/samples.json",
    "features.parquet",
    "selection.json",
    "review.json",
    "sizing.json",
    "scaling.json",
    "placement.json",
)
"""Artifacts of the run, in the order they appear; the run is killed as soon as each is seen for the first time."""


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "pipelines.cli", *ARGUMENTS, "--workspace", str(folder)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)


def finish(folder: Path) -> Plan:
    process = start(folder)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()
    return PlanStore(Workspace(folder)).current("wordcount")


def kill_when_seen(folder: Path, artifact: Path) -> None:
    process = start(folder)
    while not artifact.exists():
        assert process.poll() is None, f"ended before {artifact.name} appeared"
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def measured(folder: Path) -> dict[str, int]:
    """When each kept measurement was written, nanoseconds."""
    kept = [*folder.glob("runs/*/*/observations/*.json"), *folder.glob("runs/*/*/profile.json")]
    return {path.name: path.stat().st_mtime_ns for path in kept}


def content(plan: Plan) -> dict[str, object]:
    """The plan without what names an MLflow run, by itself or by the digest of what holds its name."""
    made_by = {"model_uri": True, "code_version": True, "digests": {"selection", "sizing", "placement"}}
    return json.loads(plan.model_dump_json(exclude={"created_at": True, "lineage": made_by}))


def test_a_run_killed_at_every_stage_ends_in_the_same_plan(tmp_path: Path) -> None:
    undisturbed = finish(tmp_path / "undisturbed")
    folder = tmp_path / "killed"
    before: dict[str, int] = {}
    for name in KILLED_AT:
        kill_when_seen(folder, folder / "runs" / "wordcount" / "r" / name)
        now = measured(folder)
        assert before.items() <= now.items(), f"measured again after the kill at {name}"
        before = now
    plan = finish(folder)
    assert before.items() <= measured(folder).items()
    assert PlanStore(Workspace(folder)).versions("wordcount") == [1]
    assert content(plan) == content(undisturbed)
