"""What the file of a planned job says now, about the job and about operating it."""

from pathlib import Path

from models.job import Job
from models.operations import Operations
from models.plan import Plan
from pipelines.catalogue import job_path
from pipelines.run import PipelineRun
from pipelines.workspace import Workspace


def job_of(workspace: Workspace, plan: Plan) -> Job:
    """The job of a plan.

    Raises:
        InvalidInput: its file is gone, or wrong.
        Missing, Damaged: the request of the run that made the plan is.
    """
    return PipelineRun.open(workspace, _request_key(plan)).job


def file_beside(workspace: Workspace, plan: Plan, name: str) -> Path:
    """A file in the folder of the job's file."""
    run = PipelineRun.open(workspace, _request_key(plan))
    return job_path(run.request.job).parent / name


def _request_key(plan: Plan) -> str:
    return f"runs/{plan.job}/{plan.lineage.run}/request.json"


def operations_of(job: Job) -> Operations:
    """What a job's file says; the defaults where it says nothing, as one of SQL alone cannot."""
    return job.operations or Operations()
