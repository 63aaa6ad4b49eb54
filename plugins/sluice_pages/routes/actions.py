"""The page on which a job is changed, and its buttons: replan, apply, roll back, pin, unpin.

The page shows what each would change. A button carries the version that was shown; where another one has been published
since, nothing is changed. Replans and applications are runs of their DAGs, which ask for approval as they always do.
"""

from datetime import UTC, datetime
from typing import Annotated, Final

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from models.errors import InvalidInput
from pipelines.pages.comparison import compare
from pipelines.pages.operating import operating
from pipelines.pages.versions import versions_of
from pipelines.planning.preview import PreviewBusy, preview_apart
from pipelines.store.pins import PlanPin, keep_pin, release_pin
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from sluice_pages.access import may_apply_plans, may_change_plans, may_start
from sluice_pages.airflow_records import pending_approvals
from sluice_pages.dag_runs import APPLYING, REPLANNING, start_run, started_runs
from sluice_pages.pages import page
from sluice_pages.routes.forms import FormDep, rate_in, version_in
from sluice_pages.routes.workspace import Content, WorkspaceDep

router: Final = APIRouter()

_CHANGING: Final = [Depends(may_change_plans)]
_APPLYING: Final = [Depends(may_apply_plans)]


def _operating(
    workspace: WorkspaceDep,
    session: SessionDep,
    user: GetUserDep,
    job: str,
    rate: Annotated[float | None, Query(gt=0, le=1e15)] = None,
    version: Annotated[int | None, Query(ge=1)] = None,
) -> Content:
    content = operating(workspace, job)
    may_change = may_start(user, REPLANNING)
    if rate is not None and not may_change:
        raise HTTPException(403, "A replan is previewed by users who may start runs of the DAG 'replan'.")
    try:
        previewed = None if rate is None else preview_apart(workspace, job, rate)
    except PreviewBusy as busy:
        raise HTTPException(429, str(busy)) from None
    return {
        "operating": content,
        "preview": previewed,
        "rollback": None if version is None else compare(workspace, job, content.current.version, version),
        "may_change": may_change,
        "may_apply": may_start(user, APPLYING),
        "approvals": [one for one in pending_approvals(session, user, {job}) if one.job == job],
        "runs": started_runs(session, user, job),
    }


@router.get("/jobs/{job}/operate", name="operate")
def operate_page(request: Request, content: Annotated[Content, Depends(_operating)]) -> HTMLResponse:
    return page(request, "operate.html.j2", **content)


@router.get("/jobs/{job}/operate.json", name="operate_json")
def operate_json(content: Annotated[Content, Depends(_operating)]) -> Content:
    return content


@router.post("/jobs/{job}/replan", name="replan", dependencies=_CHANGING)
def replan(
    workspace: WorkspaceDep, session: SessionDep, user: GetUserDep, request: Request, job: str, form: FormDep
) -> RedirectResponse:
    """Start a run of the DAG `replan` for the rate in the form."""
    rate = rate_in(form, "rate")
    _check_shown(workspace, job, version_in(form, "current"))
    start_run(session, user, request, REPLANNING, {"job": job, "rate": rate})
    return _back(request, "operate", job)


@router.post("/jobs/{job}/apply", name="apply", dependencies=_APPLYING)
def apply(
    workspace: WorkspaceDep, session: SessionDep, user: GetUserDep, request: Request, job: str, form: FormDep
) -> RedirectResponse:
    """Start a run of the DAG `apply_plan` for the newest plan; it asks for approval unless the job's file needs none."""
    current = version_in(form, "current")
    _check_shown(workspace, job, current)
    start_run(session, user, request, APPLYING, {"job": job, "version": current})
    return _back(request, "operate", job)


@router.post("/jobs/{job}/roll-back", name="roll_back", dependencies=_CHANGING)
def roll_back(workspace: WorkspaceDep, user: GetUserDep, request: Request, job: str, form: FormDep) -> RedirectResponse:
    """Publish a version that deploys what an older one did, and pin the job to it."""
    version, current = version_in(form, "version"), version_in(form, "current")
    _check_shown(workspace, job, current)
    try:
        PlanStore(workspace).rollback(job, version, _now(), _name(user), form.get("reason") or None, current=current)
    except InvalidInput as error:
        raise HTTPException(409, str(error)) from None
    return _back(request, "operate", job)


@router.post("/jobs/{job}/pin", name="pin", dependencies=_CHANGING)
def pin(workspace: WorkspaceDep, user: GetUserDep, request: Request, job: str, form: FormDep) -> RedirectResponse:
    """Keep the job at its newest plan, whatever its rate."""
    current, reason = version_in(form, "current"), form.get("reason") or "pinned from the pages"
    _check_shown(workspace, job, current)
    keep_pin(workspace, PlanPin(job=job, version=current, by=_name(user), reason=reason, pinned_at=_now()))
    return _back(request, "operate", job)


@router.post("/jobs/{job}/unpin", name="unpin", dependencies=_CHANGING)
def unpin(workspace: WorkspaceDep, request: Request, job: str) -> RedirectResponse:
    """Release the pin of a job, and lead back to the jobs."""
    versions_of(PlanStore(workspace), job)
    release_pin(workspace, job)
    return _back(request, "jobs")


def _check_shown(workspace: Workspace, job: str, current: int) -> None:
    """Refuse what was decided on the sight of another version than the newest. Raises InvalidInput for an unknown job."""
    store = PlanStore(workspace)
    versions_of(store, job)
    newest = store.current(job).version
    if newest != current:
        raise HTTPException(
            409,
            f"Nothing was changed: the page showed version {current} of the plan of {job!r}, and version {newest} is the "
            "current one now. Look at it, and decide again.",
        )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _name(user: GetUserDep) -> str:
    return user.get_name() or "a user"


def _back(request: Request, name: str, job: str | None = None) -> RedirectResponse:
    address = request.app.url_path_for(name, **({} if job is None else {"job": job}))
    return RedirectResponse(f"{request.scope.get('root_path', '')}{address}", status_code=303)
