"""The routes of the autopilots: all of them, one with its figures, and the buttons that stop it and let it act again."""

import functools
from datetime import UTC, datetime
from typing import Annotated, Final

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from pipelines.control.files import StopSwitch
from pipelines.pages.autopilot.detail import AutopilotDetail, autopilot_detail, autopilot_files
from pipelines.pages.autopilot.overview import autopilot_rows
from pipelines.pages.autopilot.recent import MOST_HOURS, RecentDecisions
from pipelines.store.pictures import Pictures
from sluice_pages.access import may_switch_autopilots
from sluice_pages.pages import page
from sluice_pages.routes.forms import FormDep
from sluice_pages.routes.workspace import Content, WorkspaceDep

router: Final = APIRouter()

DEFAULT_HOURS: Final = 3
CHOICES_HOURS: Final = (1, 3, 6, 12, MOST_HOURS)
LEAST_UPDATE_S: Final = 5.0
"""Least time between two updates of a page."""
_SWITCHING: Final = [Depends(may_switch_autopilots)]
HoursQuery = Annotated[float, Query(gt=0, le=MOST_HOURS)]


@functools.cache
def _recent() -> RecentDecisions:
    return RecentDecisions()


def _rows(workspace: WorkspaceDep) -> Content:
    return {"autopilots": autopilot_rows(workspace, datetime.now(UTC))}


def _detail(workspace: WorkspaceDep, job: str, hours: HoursQuery = DEFAULT_HOURS) -> AutopilotDetail:
    return autopilot_detail(workspace, _recent(), job, hours, datetime.now(UTC))


DetailDep = Annotated[AutopilotDetail, Depends(_detail)]


@router.get("/autopilots", name="autopilots")
def autopilots_page(request: Request, content: Annotated[Content, Depends(_rows)]) -> HTMLResponse:
    return page(request, "autopilots.html.j2", every_s=LEAST_UPDATE_S, **content)


@router.get("/autopilots.json", name="autopilots_json")
def autopilots_json(content: Annotated[Content, Depends(_rows)]) -> Content:
    return content


@router.get("/jobs/{job}/autopilot", name="autopilot")
def autopilot_page(request: Request, detail: DetailDep) -> HTMLResponse:
    every_s = max(LEAST_UPDATE_S, detail.state.every_s)
    return page(request, "autopilot.html.j2", detail=detail, every_s=every_s, choices=CHOICES_HOURS)


@router.get("/jobs/{job}/autopilot.json", name="autopilot_json")
def autopilot_json(detail: DetailDep) -> AutopilotDetail:
    return detail


@router.get("/jobs/{job}/autopilot/pictures.json", name="autopilot_pictures")
def pictures_json(workspace: WorkspaceDep, job: str, hours: HoursQuery = DEFAULT_HOURS) -> Pictures:
    # Plotly's figures take a second to import, which only this route needs.
    from pipelines.pages.autopilot.figures import autopilot_pictures
    from pipelines.pages.autopilot.series import autopilot_series

    files = autopilot_files(workspace, job)
    return autopilot_pictures(autopilot_series(_recent().of(files, hours)))


@router.post("/jobs/{job}/autopilot/stop", name="stop_autopilot", dependencies=_SWITCHING)
def stop_autopilot(
    workspace: WorkspaceDep, request: Request, user: GetUserDep, job: str, form: FormDep
) -> RedirectResponse:
    """Keep the autopilot from acting, and lead back to its page."""
    files = autopilot_files(workspace, job)
    by, reason = user.get_name() or "a user", form.get("reason", "")
    files.stop(StopSwitch(job=job, by=by, reason=reason, stopped_at=datetime.now(UTC)))
    return _back(request, job)


@router.post("/jobs/{job}/autopilot/resume", name="resume_autopilot", dependencies=_SWITCHING)
def resume_autopilot(workspace: WorkspaceDep, request: Request, job: str) -> RedirectResponse:
    """Let the autopilot act again, and lead back to its page."""
    autopilot_files(workspace, job).resume()
    return _back(request, job)


def _back(request: Request, job: str) -> RedirectResponse:
    address = request.app.url_path_for("autopilot", job=job)
    return RedirectResponse(f"{request.scope.get('root_path', '')}{address}", status_code=303)
