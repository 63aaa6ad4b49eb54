"""The application that Airflow's API server mounts: routes, who may see them, and what goes with every answer."""

import functools

from fastapi import Depends, FastAPI

from sluice_pages.access import may_see_plans
from sluice_pages.errors import HANDLERS
from sluice_pages.headers import SecurityHeaders
from sluice_pages.routes import router


@functools.cache
def app() -> FastAPI:
    """Every route is behind `may_see_plans`; there are no mounts and no generated documentation, which would not be."""
    made = FastAPI(
        title="Sluice plans",
        dependencies=[Depends(may_see_plans)],
        exception_handlers=HANDLERS,
        openapi_url=None,
        redirect_slashes=False,
    )
    made.include_router(router)
    made.add_middleware(SecurityHeaders)
    return made
