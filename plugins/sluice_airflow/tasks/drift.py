"""Tasks of `watch_drift`, and of `capacity_plan` for requests after drift."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sluice_airflow.notices.notifying import notify
from sluice_airflow.reporting import reported, task_progress

JOB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def jobs_to_watch(params: Mapping[str, Any]) -> list[str]:
    """The job in the parameters, else the jobs that have a plan and production samples in the workspace."""
    with reported("jobs"):
        from pipelines.drift.production import jobs_with_samples
        from pipelines.store.plans import PlanStore
        from pipelines.store.workspace import Workspace

        if params.get("job"):
            return [str(params["job"])]
        workspace = Workspace()
        planned = set(PlanStore(workspace).jobs())
        return [job for job in jobs_with_samples(workspace) if job in planned]


def watch(job: str, samples: str | None) -> dict[str, Any] | None:
    """Compare a job's production with its measurements; returns a request for new ones, or None.

    Args:
        samples: workspace key below `production/`; None: all samples of the job.
    """
    with reported("watch"):
        from datetime import UTC, datetime

        from pipelines.drift.detect import detect_drift
        from pipelines.drift.request import request_reprofile
        from pipelines.store.workspace import Workspace

        workspace = Workspace()
        report = detect_drift(workspace, job, samples, task_progress())
        asked = request_reprofile(workspace, report, datetime.now(UTC))
        if asked is None:
            if report.drifted:
                task_progress().say("watch: new measurements have been requested before")
            return None
        notify("drift-found", job, f"production of {job} differs from its measurements", asked.reason)
        return asked.model_dump(mode="json")


def planned_jobs() -> list[dict[str, Any]]:
    """A request for new measurements of each job that has a plan, at the plan's rate; pinned jobs are left out."""
    with reported("jobs"):
        from pipelines.store.pins import pin_of
        from pipelines.store.plans import PlanStore
        from pipelines.store.workspace import Workspace

        workspace, asked = Workspace(), []
        for job in PlanStore(workspace).jobs():
            if (pin := pin_of(workspace, job)) is not None:
                task_progress().say(f"jobs: {pin}")
            else:
                asked.append({"job": job, "reason": "the schedule of the DAG"})
        return asked


def newest_of_each_job(extras: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The newest request of each job, in the order of the jobs' first requests.

    Raises:
        InvalidInput: a request names no job, or a request of another job.
    """
    from models.errors import InvalidInput

    newest: dict[str, dict[str, Any]] = {}
    for extra in extras:
        job, request = extra.get("job"), extra.get("request")
        if not isinstance(job, str) or not JOB.fullmatch(job):
            raise InvalidInput(
                f"a request for new measurements must carry 'job' (a name), but got {dict(extra)!r:.200}"
            )
        if request is not None and not re.search(rf"/runs/{re.escape(job)}/[^/]+/request\.json$", str(request)):
            raise InvalidInput(
                f"'request' must be the URI of a run's request, .../runs/{job}/RUN/request.json, but got {request!r:.200}"
            )
        newest[job] = dict(extra)
    return list(newest.values())


def keep_reprofile_request(extra: Mapping[str, Any], run: str) -> str:
    """Store a copy of the request in the event, else of the one behind the job's plan; returns its URI.

    The request is always read from this workspace, even if the event names another one. The rate is the event's, else the
    plan's.

    Args:
        run: name of the new run; a new name makes it measure again.

    Raises:
        InvalidInput: the run does not exist, or the job has no plan.
    """
    with reported("request"):
        from models.errors import InvalidInput
        from pipelines.inputs.files import validate_as
        from pipelines.inputs.plan_request import PlanRequest
        from pipelines.run import PipelineRun
        from pipelines.store.plans import PlanStore
        from pipelines.store.workspace import Missing, Workspace, checked_key

        workspace, job, rate = Workspace(), str(extra["job"]), extra.get("rate")
        named = str(extra.get("request") or "").rsplit("/", 2)
        origin = named[1] if len(named) == 3 else ""
        if not origin or rate is None:
            plan = PlanStore(workspace).current(job)
            origin, rate = origin or plan.lineage.run, plan.target_rate if rate is None else rate
        try:
            before = workspace.read(checked_key(f"runs/{job}/{origin}/request.json"), PlanRequest)
        except Missing:
            raise InvalidInput(f"the workspace {workspace.url} holds no request of run {origin!r} of {job!r}") from None
        asked = before.model_dump(mode="json") | {"rate": rate, "run": run}
        request = validate_as(asked, PlanRequest, origin="the request for new measurements")
        task_progress().say(
            f"request: new measurements of {job}: {str(extra.get('reason') or 'no reason given')[:1000]}"
        )
        return PipelineRun(request, workspace).start()
