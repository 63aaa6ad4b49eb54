"""Registers the plan pages with Airflow. Every component of Airflow loads this file, so it imports nothing heavy."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from airflow.plugins_manager import AirflowPlugin

PREFIX = "/sluice"
_Message = MutableMapping[str, Any]


async def plan_pages(
    scope: _Message, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
) -> None:
    """The pages as an ASGI application, made at the first request; only API servers get requests."""
    from sluice_pages.app import app

    await app()(scope, receive, send)


class SluicePages(AirflowPlugin):
    """The plan pages in Airflow's navigation: in its frame, and in a tab of their own."""

    name = "sluice_pages"
    fastapi_apps = [{"app": plan_pages, "url_prefix": PREFIX, "name": "Sluice plans"}]  # noqa: RUF012  (declared so in the base class)
    external_views = [  # noqa: RUF012
        {
            "name": "Sluice plans",
            "href": f"{PREFIX}/",
            "destination": "nav",
            "category": "Sluice",
            "url_route": "sluice-plans",
        },
        {
            "name": "Sluice autopilots",
            "href": f"{PREFIX}/autopilots",
            "destination": "nav",
            "category": "Sluice",
            "url_route": "sluice-autopilots",
        },
        {"name": "Sluice plans in a new tab", "href": f"{PREFIX}/", "destination": "nav", "category": "Sluice"},
    ]
