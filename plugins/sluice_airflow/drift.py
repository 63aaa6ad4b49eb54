"""What the tasks around drift do: look at production, ask for new measurements, and take such a request."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from sluice_airflow.reporting import reported, task_progress

JOB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def jobs_to_watch(params: Mapping[str, Any]) -> list[str]:
    """The job of the parameters, else the jobs that have a plan, and production samples in the workspace."""
    with reported("jobs"):
        from pipelines.drift import jobs_with_samples
        from pipelines.plan_store import PlanStore
        from pipelines.workspace import Workspace

        if params.get("job"):
            return [str(params["job"])]
        workspace = Workspace()
        planned = set(PlanStore(workspace).jobs())
        return [job for job in jobs_with_samples(workspace) if job in planned]


def watch(job: str, samples: str | None) -> dict[str, Any] | None:
    """Compare a job's production with its measurements; the request that follows, None where none does.

    Args:
        samples: workspace key below `production/`; None: all that there are of the job.
    """
    with reported("watch"):
        from datetime import UTC, datetime

        from pipelines.drift import detect_drift, request_reprofile
        from pipelines.workspace import Workspace

        workspace = Workspace()
        report = detect_drift(workspace, job, samples, task_progress())
        asked = request_reprofile(workspace, report, datetime.now(UTC))
        if asked is None:
            if report.drifted:
                task_progress().say("watch: new measurements were asked for already")
            return None
        return asked.model_dump(mode="json")


def newest_of_each_job(extras: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The newest request of each job, in the order in which jobs first asked.

    Raises:
        InvalidInput: one names no job, or not the request of a run of it.
    """
    from models.errors import InvalidInput

    newest: dict[str, dict[str, Any]] = {}
    for extra in extras:
        job, request = extra.get("job"), extra.get("request")
        if not isinstance(job, str) or not JOB.fullmatch(job):
            raise InvalidInput(f"a request to measure anew must carry 'job' (a name), but got {dict(extra)!r:.200}")
        if request is not None and not re.search(rf"/runs/{re.escape(job)}/[^/]+/request\.json$", str(request)):
            raise InvalidInput(
                f"'request' must be the URI of a run's request, .../runs/{job}/RUN/request.json, but got {request!r:.200}"
            )
        newest[job] = dict(extra)
    return list(newest.values())


def keep_reprofile_request(extra: Mapping[str, Any], run: str) -> str:
    """Keep the request of the run that an event names, or else of the job's plan, under a new name; returns its URI.

    It is read from this workspace, wherever the event says that it lies. The rate is the event's, else the plan's.

    Args:
        run: names the new run, so that it measures anew.

    Raises:
        InvalidInput: there is no such run, or the job has no plan.
    """
    with reported("request"):
        from models.errors import InvalidInput
        from pipelines.files import validate_as
        from pipelines.plan_store import PlanStore
        from pipelines.run import PipelineRun, PlanRequest
        from pipelines.workspace import Missing, Workspace, checked_key

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
        request = validate_as(asked, PlanRequest, origin="the request to measure anew")
        task_progress().say(f"request: {job} is measured anew: {str(extra.get('reason') or 'no reason given')[:1000]}")
        return PipelineRun(request, workspace).start()
