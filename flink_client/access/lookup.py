"""Finding a connection by its name: where Airflow runs, by its secrets back ends; else in the environment."""

import os
from collections.abc import Callable
from typing import Final

from flink_client.access.connection import NamedConnection, read_connection
from models.errors import InvalidInput

PREFIX: Final = "AIRFLOW_CONN_"
"""Airflow's environment variables of connections start so."""

Lookup = Callable[[str], NamedConnection | None]


class ConnectionUnknown(InvalidInput):
    """There is no connection of that name."""


def from_environment(name: str) -> NamedConnection | None:
    """The connection that `AIRFLOW_CONN_NAME` holds; None: it is not set.

    Airflow writes the name in capitals. Shells cannot set names with a dash or a point, so an underscore serves, too.
    """
    exact = f"{PREFIX}{name.upper()}"
    for variable in dict.fromkeys((exact, variable_of(name))):
        if text := os.environ.get(variable):
            return read_connection(name, text, f"the environment variable {variable}")
    return None


_lookups: list[Lookup] = [from_environment]


def look_up_first(lookup: Lookup) -> None:
    """Ask `lookup` before the environment, in this process: Airflow's plugins register Airflow's secrets back ends."""
    if lookup not in _lookups:
        _lookups.insert(0, lookup)


def find_connection(name: str) -> NamedConnection:
    """A connection by its name.

    Raises:
        ConnectionUnknown: there is none.
        InvalidInput: it cannot be read.
    """
    for lookup in _lookups:
        if (found := lookup(name)) is not None:
            return found
    raise ConnectionUnknown(
        f"there is no connection {name!r}; add it in Airflow (Admin, Connections), or set the environment variable "
        f"{variable_of(name)} to it, as JSON or URI"
    )


def variable_of(name: str) -> str:
    """The environment variable of a connection."""
    return PREFIX + name.upper().replace("-", "_").replace(".", "_")
