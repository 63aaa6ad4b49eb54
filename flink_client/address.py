"""Addresses of servers, and that of a running Flink cluster."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from models.schema import Format


def _checked_url(url: str) -> str:
    if "\\" in url or any(not char.isprintable() or char.isspace() for char in url):
        raise ValueError("a URL must not hold spaces, backslashes or control characters")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"must be an address such as http://host:9090, but got {url[:80]!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or a password; name an environment variable in 'token_variable' instead")
    return url.rstrip("/")


Url = Annotated[str, AfterValidator(_checked_url)]
"""HTTP address without user, password or trailing slash."""


class FlinkAddress(Format):
    """A running Flink cluster to measure on."""

    rest_url: Url = Field(description="REST address of its JobManager, for example http://jobmanager:8081.")
    prometheus_url: Url | None = Field(
        None, description="Prometheus that scrapes its TaskManagers, if metrics are to be read from it."
    )
    control_host: str | None = Field(
        None,
        min_length=1,
        max_length=253,
        description="Address at which the TaskManagers reach this machine; detected if absent.",
    )
