"""Addresses of servers, and that of a running Flink cluster."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from models.schema import Format

_CONNECTION: Final = "connection:"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")


def connection_name(address: str) -> str | None:
    """The name in `connection:NAME`; None: it is another address."""
    return address.removeprefix(_CONNECTION) if address.startswith(_CONNECTION) else None


def checked_url(url: str) -> str:
    """The URL without a slash at its end. Raises ValueError: it is none, or holds a user or a password."""
    if "\\" in url or any(not char.isprintable() or char.isspace() for char in url):
        raise ValueError("a URL must not hold spaces, backslashes or control characters")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"must be an address such as http://host:9090, but got {url[:80]!r}")
    if parts.username is not None or parts.password is not None:
        raise ValueError(
            "must not hold a user or a password; name a connection (connection:NAME) or an environment variable in "
            "'token_variable' instead"
        )
    return url.rstrip("/")


def checked_address(address: str) -> str:
    """A URL or `connection:NAME`. Raises ValueError: it is neither."""
    if (name := connection_name(address)) is None:
        return checked_url(address)
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the name of a connection must be letters, digits and . _ -, as in connection:my_flink, but got {name[:80]!r}"
        )
    return address


Url = Annotated[str, AfterValidator(checked_url)]
"""HTTP address without user, password or trailing slash."""
Address = Annotated[str, AfterValidator(checked_address)]
"""A Url, or `connection:NAME`: a connection of Airflow, or of the environment variable AIRFLOW_CONN_NAME."""


class FlinkAddress(Format):
    """A running Flink cluster to measure on."""

    rest_url: Address = Field(
        description="REST address of its JobManager, for example http://jobmanager:8081, or connection:NAME."
    )
    prometheus_url: Address | None = Field(
        None, description="Prometheus that scrapes its TaskManagers, if metrics are to be read from it."
    )
    control_host: str | None = Field(
        None,
        min_length=1,
        max_length=253,
        description="Address at which the TaskManagers reach this machine; detected if absent.",
    )
