"""The jobs that are followed: those that have a plan, and those of the catalogue, by what their files ask for."""

import logging
from collections.abc import Callable
from pathlib import Path

from models.errors import InvalidInput, SluiceError
from models.job import Job
from pipelines.inputs.catalogue import file_of_job, job_names, load_job, load_job_file
from pipelines.inputs.job_files import JobFile, operations_of
from pipelines.inputs.operations.operations import Operations
from pipelines.planning.planned_job import file_beside, job_of
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

_logger = logging.getLogger(__name__)


def job_file(workspace: Workspace, job: str) -> Job:
    """The file of a job that has a plan, else that of the catalogue.

    Raises:
        InvalidInput: there is none, or it is wrong.
    """
    store = PlanStore(workspace)
    return job_of(workspace, store.current(job)) if store.versions(job) else load_job(job)


def file_beside_job(workspace: Workspace, job: str, name: str) -> Path:
    """A file in the folder of the file that `job_file` reads."""
    store = PlanStore(workspace)
    return file_beside(workspace, store.current(job), name) if store.versions(job) else file_of_job(job).parent / name


def operated_jobs(workspace: Workspace, asks: Callable[[Operations], bool], followed: str) -> list[str]:
    """Jobs whose file asks for something. Faulty files are logged.

    Args:
        asks: whether a file does.
        followed: how the jobs are followed, in a word: `observed`.
    """
    planned, found, named = set(PlanStore(workspace).jobs()), [], []
    try:
        named = job_names()
    except InvalidInput as error:
        _logger.warning("only jobs with a plan are %s: %s", followed, error)
    for job in sorted({*planned, *named}):
        try:
            # A program, whose operators only Flink knows, says nothing of its operation.
            if job not in planned and not isinstance(load_job_file(job), JobFile):
                continue
            if asks(operations_of(job_file(workspace, job))):
                found.append(job)
        except (SluiceError, OSError) as error:
            _logger.warning("the running job %s is not %s: %s", job, followed, error)
    return found
