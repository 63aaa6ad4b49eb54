"""The same request from two processes at once: one version of the plan, and one registered model."""

import json
import subprocess
import sys
from pathlib import Path

from pipelines.inputs.plan_request import PlanRequest
from pipelines.registry.models import list_versions
from pipelines.registry.tracking import open_tracking
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace


def test_one_request_is_one_version_and_one_model(tracked_workspace: Workspace, recorded_request: PlanRequest) -> None:
    folder = Path(tracked_workspace.url.removeprefix("file://"))
    command = [
        sys.executable,
        "-m",
        "pipelines.cli",
        "plan",
        "nexmark-q5",
        "--rate",
        "1080000",
        "--testbed",
        "recorded",
    ]
    command += ["--measurements", str(recorded_request.measurements), "--rows", "14", "--model", "log", "--json"]
    processes = [
        subprocess.Popen(
            [*command, "--workspace", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    ended = [process.communicate(timeout=400) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], [errors for _, errors in ended]
    first, second = (json.loads(output) for output, _ in ended)
    assert first == second
    assert PlanStore(tracked_workspace).versions("nexmark-q5") == [1]
    assert [info.version for info in list_versions(open_tracking(tracked_workspace), "nexmark-q5")] == [1]
    assert any("makes the same run; waiting for its results" in errors for _, errors in ended)
