"""The routes of a job's calendar: the page, its content as JSON, and its figure."""

import functools
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from pipelines.calendar.sizes import KeptSizes
from pipelines.pages.calendar.detail import DAYS, CalendarDetail, around, calendar_detail
from pipelines.store.pictures import Pictures
from sluice_pages.pages import page
from sluice_pages.routes.workspace import WorkspaceDep

router: Final = APIRouter()


@functools.cache
def _sizes() -> KeptSizes:
    return KeptSizes()


def _calendar(workspace: WorkspaceDep, job: str) -> CalendarDetail:
    return calendar_detail(workspace, job, datetime.now(UTC), _sizes().of)


CalendarDep = Annotated[CalendarDetail, Depends(_calendar)]


@router.get("/jobs/{job}/calendar", name="calendar")
def calendar_page(request: Request, detail: CalendarDep) -> HTMLResponse:
    return page(request, "calendar.html.j2", detail=detail, days=DAYS)


@router.get("/jobs/{job}/calendar.json", name="calendar_json")
def calendar_json(detail: CalendarDep) -> CalendarDetail:
    return detail


@router.get("/jobs/{job}/calendar/pictures.json", name="calendar_pictures")
def pictures_json(workspace: WorkspaceDep, job: str) -> Pictures:
    # Plotly's figures take a second to import, which only this route needs.
    from pipelines.pages.calendar.figures import calendar_pictures

    return calendar_pictures(around(workspace, job, datetime.now(UTC)))
