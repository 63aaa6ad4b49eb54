"""Tasks of `watch_drift`, and of `capacity_plan` for requests after drift."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any, Final

from sluice_airflow.notices.notifying import notify
from sluice_airflow.reporting import reported, task_progress
from sluice_airflow.unread import content_of, what_is_understood

JOB = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
SENT_WITHIN: Final = timedelta(days=7)
"""Requests that are older are not sent: events are read from the oldest request on, and there may be hundreds a day."""
CLOCKS_DIFFER: Final = timedelta(hours=1)
"""More than the clocks of a worker and of Airflow's database differ by."""


def batches_to_watch(params: Mapping[str, Any]) -> list[list[str]]:
    """The job in the parameters, else the jobs that have a plan and production samples in the workspace; in batches."""
    with reported("batches"):
        from pipelines.drift.batch import in_batches
        from pipelines.drift.production import jobs_with_samples
        from pipelines.store.plans import PlanStore
        from pipelines.store.workspace import Workspace

        if params.get("job"):
            return [[str(params["job"])]]
        workspace = Workspace()
        planned = set(PlanStore(workspace).jobs())
        return in_batches([job for job in jobs_with_samples(workspace) if job in planned])


def watch(batch: Sequence[str], samples: str | None) -> list[str]:
    """Compare each job's production with its measurements, and keep requests for new ones.

    Args:
        samples: workspace key below `production/`; None: all samples of the job.

    Returns:
        URIs of the reports that new measurements are requested for.

    Raises:
        SluiceError: a person must correct something before some of the jobs can be checked.
        RuntimeError: some of the jobs could not be checked; another try may succeed.
    """
    with reported("watch"):
        from models.errors import SluiceError
        from pipelines.drift.batch import check_batch
        from pipelines.store.workspace import Workspace

        checked = check_batch(Workspace(), batch, samples, lambda: datetime.now(UTC), task_progress())
        for job, reason in checked.outdated.items():
            notify(
                "drift-found",
                job,
                f"{job} has changed since it was planned; plan it from the running job again",
                reason,
            )
        if checked.failures:
            message = f"{len(checked.failures)} of {len(batch)} jobs could not be checked for drift: {checked}"
            if checked.unexpected:
                raise RuntimeError(message) from ExceptionGroup("unexpected errors", checked.unexpected)
            raise SluiceError(message)
        return [asked.drift for asked in checked.requests]


def requests_to_send(batches: Sequence[Sequence[str]], events: Any, now: datetime) -> list[dict[str, Any]]:
    """The requests for new measurements of these jobs, instead of those of their plans, that no event carries yet.

    The events themselves say what was sent. A request that was kept by a process that was killed, or whose event was lost with
    a failed task, is sent by the next run.

    Args:
        events: all of the asset, as Airflow's `inlet_events` has them.
        now: with a time zone.
    """
    with reported("ask"):
        kept = [asked for batch in batches for job in batch if (asked := _request_of(job)) is not None]
        recent = [asked for asked in kept if datetime.fromisoformat(asked["created_at"]) > now - SENT_WITHIN]
        if not recent:
            return []
        oldest = min(datetime.fromisoformat(asked["created_at"]) for asked in recent)
        contents = [content_of(event.extra) for event in events.after(oldest - CLOCKS_DIFFER)]
        sent = {_identity(asked) for content in contents for asked in requests_in(content)}
        return [asked for asked in recent if _identity(asked) not in sent]


def _request_of(job: str) -> dict[str, Any] | None:
    from models.errors import SluiceError
    from pipelines.drift.request import request_kept
    from pipelines.store.workspace import Workspace

    try:
        asked = request_kept(Workspace(), job)
    except SluiceError as error:  # the check of the job has failed, too
        task_progress().say(f"ask: whether {job} needs new measurements is not known: {error}")
        return None
    return None if asked is None else asked.model_dump(mode="json")


def _identity(asked: Mapping[str, Any]) -> tuple[Any, ...]:
    """Reports count from 1 again in a new workspace, so a job's number alone is not enough."""
    return asked.get("job"), asked.get("report"), asked.get("created_at")


def say_and_notify(asked: Sequence[Mapping[str, Any]]) -> None:
    """Log the requests that are sent, and notify those who listen."""
    for one in asked:
        job, reason = str(one["job"]), str(one["reason"])
        task_progress().say(f"ask: new measurements of {job}: {reason}")
        notify("drift-found", job, f"production of {job} differs from its measurements", reason)


def planned_jobs() -> list[dict[str, Any]]:
    """A request for new measurements of each job that has a plan, at the plan's rate.

    Left out are pinned jobs, and those that were planned from the running job.
    """
    with reported("jobs"):
        from pipelines.drift.request import can_be_measured
        from pipelines.store.pins import pin_of
        from pipelines.store.plans import PlanStore
        from pipelines.store.workspace import Workspace

        workspace, asked = Workspace(), []
        for job in PlanStore(workspace).jobs():
            if (pin := pin_of(workspace, job)) is not None:
                task_progress().say(f"jobs: {pin}")
            elif not can_be_measured(workspace, job):
                task_progress().say(f"jobs: {job} was planned from the running job, and is not measured")
            else:
                asked.append({"job": job, "reason": "the schedule of the DAG"})
        return asked


def requests_in(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The requests that an event carries: several under `requests`, or one, which is then the content itself."""
    several = content.get("requests")
    return [content_of(one) for one in several] if isinstance(several, list) and several else [content]


def newest_of_each_job(extras: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The newest request of each job, in the order of the jobs' first requests.

    Args:
        extras: the contents of events, each with one request or several. Requests that cannot be understood are logged, and
            left out.

    Raises:
        InvalidInput: none can be understood: it names no job, or a request of another job.
    """
    asked = what_is_understood(chain.from_iterable(map(requests_in, extras)), _checked)
    return list({str(one["job"]): one for one in asked}.values())


def _checked(extra: Mapping[str, Any]) -> dict[str, Any]:
    from models.errors import InvalidInput

    job, request = extra.get("job"), extra.get("request")
    if not isinstance(job, str) or not JOB.fullmatch(job):
        raise InvalidInput(f"a request for new measurements must carry 'job' (a name), but got {dict(extra)!r:.200}")
    if request is not None and not re.search(rf"/runs/{re.escape(job)}/[^/]+/request\.json$", str(request)):
        raise InvalidInput(
            f"'request' must be the URI of a run's request, .../runs/{job}/RUN/request.json, but got {request!r:.200}"
        )
    return dict(extra)


def keep_reprofile_request(extra: Mapping[str, Any], run: str) -> str:
    """Store a copy of the request in the event, else of the one behind the job's plan; returns its URI.

    The request is always read from this workspace, even if the event names another one. The rate is the event's, else the
    plan's.

    Args:
        run: name of the new run; a new name makes it measure again.

    Raises:
        InvalidInput: the run does not exist, or measured nothing, or the job has no plan.
    """
    with reported("request"):
        from models.errors import InvalidInput
        from pipelines.inputs.parsing.files import validate_as
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
            before = PipelineRun.open(workspace, checked_key(f"runs/{job}/{origin}/request.json"), task_progress())
        except Missing:
            raise InvalidInput(f"the workspace {workspace.url} holds no request of run {origin!r} of {job!r}") from None
        if before.request.testbed == "running":
            raise InvalidInput(
                f"{job} was planned from the running job, which no testbed measures; plan it again with "
                "sluice plan --from-running, or on a testbed"
            )
        asked = before.request.model_dump(mode="json") | {"rate": rate, "run": run}
        request = validate_as(asked, PlanRequest, origin="the request for new measurements")
        task_progress().say(
            f"request: new measurements of {job}: {str(extra.get('reason') or 'no reason given')[:1000]}"
        )
        return before.again(request).start()
