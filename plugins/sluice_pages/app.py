"""The application that Airflow's API server mounts: routes, access checks, error pages and headers."""

import functools

from fastapi import Depends, FastAPI

from sluice_pages.access import logged_in, may_see_plans
from sluice_pages.errors import HANDLERS
from sluice_pages.headers import SecurityHeaders
from sluice_pages.routes import actions, autopilots, calendar, plans


@functools.cache
def app() -> FastAPI:
    """Every route depends on the access checks. Mounts and generated documentation would bypass them, so there are none."""
    made = FastAPI(
        title="Sluice plans",
        dependencies=[Depends(logged_in), Depends(may_see_plans)],
        exception_handlers=HANDLERS,
        openapi_url=None,
        redirect_slashes=False,
    )
    for routes in (plans, actions, autopilots, calendar):
        made.include_router(routes.router)
    made.add_middleware(SecurityHeaders)
    return made
