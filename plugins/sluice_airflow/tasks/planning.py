"""Tasks of `capacity_plan`: store the request, run a stage."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluice_airflow.embedded.stage_process import call
from sluice_airflow.places import check_places
from sluice_airflow.reporting import reported, task_progress

if TYPE_CHECKING:
    from pipelines.registry.models import VersionInfo
    from pipelines.run import PipelineRun


def keep_request(params: Mapping[str, Any]) -> str:
    """Validate the parameters as a request, store it in the workspace, and return its URI."""
    from pipelines.inputs.parsing.files import validate_as
    from pipelines.inputs.plan_request import PlanRequest
    from pipelines.run import PipelineRun
    from pipelines.store.workspace import Workspace

    asked = {**params, "run": params.get("run") or None}
    with reported("request"):
        workspace = Workspace()
        check_places(asked, workspace)
        request = validate_as(asked, PlanRequest, origin="the parameters of the DAG run")
        return PipelineRun(request, workspace).start()


def run_name(dag_run_id: str) -> str:
    """A DAG run's id as the name of a pipeline run."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", dag_run_id)[:120]


def run_stage(name: str, request_uri: str) -> str:
    """Run one stage for the request at `request_uri`, and return the URI of its output.

    Raises:
        InvalidInput: the job's or the cluster's file has changed since the run began.
    """
    with reported(name):
        return call(_run_stage, name, request_uri)


def pending_review(request_uri: str) -> "VersionInfo | None":
    """The model of the run with the request at `request_uri`, if planning waits for its review."""
    return call(_pending_review, request_uri)


def open_run(request_uri: str) -> "PipelineRun":
    """The run with the request at `request_uri`."""
    from pipelines.run import PipelineRun

    return PipelineRun.at(request_uri, task_progress())


def _run_stage(name: str, request_uri: str) -> str:
    from pipelines.stages import run_stage_at

    return run_stage_at(name, request_uri, task_progress())


def _pending_review(request_uri: str) -> "VersionInfo | None":
    from pipelines.stages.review import pending_review

    return pending_review(open_run(request_uri))
