"""The present file of a planned job."""

from pathlib import Path

from models.job import Job
from models.plan.content import Plan
from pipelines.inputs.catalogue import file_of_job
from pipelines.run import PipelineRun
from pipelines.store.workspace import Workspace


def job_of(workspace: Workspace, plan: Plan) -> Job:
    """The job of a plan.

    Raises:
        InvalidInput: its file is missing or wrong.
        Missing, Damaged: the request of the run that made the plan is missing or damaged.
    """
    return PipelineRun.of_plan(workspace, plan).job


def file_beside(workspace: Workspace, plan: Plan, name: str) -> Path:
    """A file in the folder of the job's file."""
    run = PipelineRun.of_plan(workspace, plan)
    return file_of_job(run.job_path).parent / name
