"""The routes. Each page has a twin with the same content as JSON."""

from pathlib import Path
from typing import Annotated, Final

import plotly
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import FileResponse, HTMLResponse

from pipelines import report
from pipelines.pages.choosing import STATES, JobState, chosen
from pipelines.pages.comparison import VersionComparison, compare
from pipelines.pages.detail import plan_detail, plan_pictures
from pipelines.pages.overview import overview
from pipelines.pages.versions import History, history
from pipelines.store.pictures import Pictures
from sluice_pages.airflow_records import components, made_by, pending_approvals
from sluice_pages.pages import page
from sluice_pages.routes.workspace import Content, WorkspaceDep

router: Final = APIRouter()

_STATIC: Final = Path(__file__).parents[1] / "static"
_FILES: Final = {
    "pages.css": _STATIC / "pages.css",
    "live.js": _STATIC / "live.js",
    "pages.js": _STATIC / "pages.js",
    "plotly.css": _STATIC / "plotly.css",
    "theme.js": Path(report.__file__).parent / "theme.js",
    "plotly.min.js": Path(plotly.__file__).parent / "package_data" / "plotly.min.js",
}
_LONGEST_SEARCH: Final = 200
_KEPT: Final = "private, max-age=604800, immutable"
"""Cache-Control of static files, whose addresses change with their content."""


def _overview(
    workspace: WorkspaceDep,
    session: SessionDep,
    user: GetUserDep,
    search: Annotated[str, Query(max_length=_LONGEST_SEARCH)] = "",
    state: JobState = "any",
) -> Content:
    jobs = overview(workspace).jobs
    approvals = pending_approvals(session, user, {row.job for row in jobs})
    shown = chosen(jobs, search, state, {approval.job for approval in approvals if approval.job is not None})
    return {"jobs": shown, "all_jobs": len(jobs), "approvals": approvals, "components": components()}


def _history(workspace: WorkspaceDep, job: str) -> History:
    return history(workspace, job)


def _plan(workspace: WorkspaceDep, session: SessionDep, user: GetUserDep, job: str, version: int) -> Content:
    detail = plan_detail(workspace, job, version)
    approvals = [one for one in pending_approvals(session, user, {job}) if one.job == job]
    return {"detail": detail, "made_by": made_by(session, user, detail.uri), "approvals": approvals}


def _comparison(
    workspace: WorkspaceDep, job: str, before: Annotated[int, Query()], after: Annotated[int, Query()]
) -> VersionComparison:
    return compare(workspace, job, before, after)


@router.get("/", name="jobs")
def jobs_page(
    request: Request, content: Annotated[Content, Depends(_overview)], search: str = "", state: JobState = "any"
) -> HTMLResponse:
    return page(request, "jobs.html.j2", search=search, state=state, states=STATES, **content)


@router.get("/jobs.json", name="jobs_json")
def jobs_json(content: Annotated[Content, Depends(_overview)]) -> Content:
    return content


@router.get("/jobs/{job}/versions", name="history")
def history_page(request: Request, content: Annotated[History, Depends(_history)]) -> HTMLResponse:
    return page(request, "history.html.j2", history=content)


@router.get("/jobs/{job}/versions.json", name="history_json")
def history_json(content: Annotated[History, Depends(_history)]) -> History:
    return content


@router.get("/jobs/{job}/versions/{version}.json", name="plan_json")
def plan_json(content: Annotated[Content, Depends(_plan)]) -> Content:
    return content


@router.get("/jobs/{job}/versions/{version}/pictures.json", name="pictures")
def pictures_json(workspace: WorkspaceDep, job: str, version: int) -> Pictures:
    return plan_pictures(workspace, job, version)


@router.get("/jobs/{job}/versions/{version}", name="plan")
def plan_page(request: Request, content: Annotated[Content, Depends(_plan)]) -> HTMLResponse:
    return page(request, "plan.html.j2", **content)


@router.get("/jobs/{job}/difference", name="difference")
def difference_page(
    request: Request, workspace: WorkspaceDep, content: Annotated[VersionComparison, Depends(_comparison)]
) -> HTMLResponse:
    return page(request, "difference.html.j2", comparison=content, history=history(workspace, content.job))


@router.get("/jobs/{job}/difference.json", name="difference_json")
def difference_json(content: Annotated[VersionComparison, Depends(_comparison)]) -> VersionComparison:
    return content


@router.get("/static/{file}", name="static")
def static_file(file: str) -> FileResponse:
    """A static file; served by a route, since mounts bypass the access checks."""
    if file not in _FILES:
        raise HTTPException(404, f"There is no file named {file[:80]!r}.")
    return FileResponse(_FILES[file], headers={"Cache-Control": _KEPT})
