"""A job of the catalogue whose file wants a person to review its models, with a champion that was approved."""

from pathlib import Path

import yaml

from pipelines.inputs.plan_request import PlanRequest
from pipelines.registry.review.decision import decide
from pipelines.run import PipelineRun
from pipelines.stages import run_stage
from pipelines.store.workspace import Workspace

JOB = "nexmark-q5"
RATE = 2_500_000.0


def approved_job(root: Path, folder: Path, workspace: Workspace, measurements: Path) -> PipelineRun:
    """The run of `waiting_job`, whose model is the champion; nothing is planned with it."""
    run = waiting_job(root, folder, workspace, measurements)
    decide(workspace, JOB, 1, True, "ada", "it is the first")
    return run


def waiting_job(root: Path, folder: Path, workspace: Workspace, measurements: Path) -> PipelineRun:
    """The run, by published measurements, whose model waits for a person.

    Args:
        folder: where the job's file is written.
    """
    document = yaml.safe_load((root / "jobs" / f"{JOB}.yaml").read_text())
    path = folder / f"{JOB}.yaml"
    path.write_text(yaml.safe_dump(document | {"sql": None, "operations": {"review": {"mode": "person"}}}))
    asked = PlanRequest(
        job=str(path), rate=RATE, testbed="recorded", measurements=str(measurements), measurement_rows=19
    )
    run = PipelineRun(asked, workspace)
    run.start()
    for stage in ("explore", "check", "select", "review"):
        run_stage(stage, run)
    return run
