"""A run that is killed at any stage and started again ends in the same plan, and repeats no finished measurement."""

import json
import os
import signal
import time
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from models.plan.content import Plan
from pipelines.store.digests import digest
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from workspaces.forked_cli import forked_context, start_cli

pytestmark = pytest.mark.slow

ARGUMENTS = ["plan", "wordcount", "--rate", "30000", "--max-slots", "12", "--max-measurements", "3", "--run", "r"]
KILLED_AT = (
    "request.json",
    "profile.json",
    "observations/m002.json",
    "exploration.json",
    "checks/samples.json",
    "features.parquet",
    "twin/65536-000002.json",
    "twin.json",
    "selection.json",
    "review.json",
    "sizing.json",
    "scaling.json",
    "placement.json",
)
"""Artifacts of the run, in the order they appear; the run is killed as soon as each is seen for the first time."""


@pytest.fixture(scope="module")
def context() -> ForkServerContext:
    return forked_context()


def start(context: ForkServerContext, folder: Path) -> ForkServerProcess:
    return start_cli(context, [*ARGUMENTS, "--workspace", str(folder)], folder.with_suffix(".log"))


def finish(context: ForkServerContext, folder: Path) -> Plan:
    process = start(context, folder)
    process.join(timeout=300)
    assert process.exitcode == 0, folder.with_suffix(".log").read_text()
    return PlanStore(Workspace(folder)).current("wordcount")


def kill_when_seen(context: ForkServerContext, folder: Path, artifact: Path) -> None:
    process = start(context, folder)
    while not artifact.exists():
        assert process.is_alive(), f"ended before {artifact.name} appeared"
        time.sleep(0.002)
    assert process.pid is not None
    os.killpg(process.pid, signal.SIGKILL)
    process.join()


def measured(folder: Path) -> dict[str, int]:
    """When each kept measurement was written, nanoseconds."""
    kept = [*folder.glob("runs/*/*/observations/*.json"), *folder.glob("runs/*/*/profile.json")]
    return {path.name: path.stat().st_mtime_ns for path in kept}


DECISIONS = ("selection", "review", "sizing", "scaling", "placement")


def decided(folder: Path, plan: Plan) -> dict[str, Any]:
    """The plan, and the artifacts of the stages that decided it, with one name for the MLflow runs and the model's version.

    The plan's digests of these artifacts are those of their content, and left out. So are the seconds that the search for a
    placement took, and the digest of the model's file, which holds the time and memory addresses of its objects; the
    digest of its capacity model is compared.
    """
    workspace = Workspace(folder)
    made = {name: workspace.read_json(f"runs/wordcount/r/{name}.json")["output"] for name in DECISIONS}
    for name in ("selection", "sizing", "scaling", "placement"):
        assert plan.lineage.digests[name] == digest(made[name])
    selection = made["selection"]
    names = {selection["mlflow_run_id"]: "SELECTION", made["review"]["mlflow_run_id"]: "REVIEW"}
    names[selection["model_uri"]] = "MODEL"
    del selection["model_version"], selection["model_digest"], made["placement"]["tuning"]["seconds"]
    dropped = {"created_at": True, "lineage": {"code_version": True, "digests": set(DECISIONS)}}
    text = json.dumps(made | {"plan": json.loads(plan.model_dump_json(exclude=dropped))})
    for name, common in names.items():
        text = text.replace(name, common)
    return json.loads(text)


def test_a_run_killed_at_every_stage_ends_in_the_same_plan(context: ForkServerContext, tmp_path: Path) -> None:
    undisturbed = finish(context, tmp_path / "undisturbed")
    folder = tmp_path / "killed"
    before: dict[str, int] = {}
    for name in KILLED_AT:
        kill_when_seen(context, folder, folder / "runs" / "wordcount" / "r" / name)
        now = measured(folder)
        assert before.items() <= now.items(), f"measured again after the kill at {name}"
        before = now
    plan = finish(context, folder)
    assert before.items() <= measured(folder).items()
    assert PlanStore(Workspace(folder)).versions("wordcount") == [1]
    assert decided(folder, plan) == decided(tmp_path / "undisturbed", undisturbed)
