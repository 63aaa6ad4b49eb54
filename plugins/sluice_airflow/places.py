"""Which files a request through Airflow may name, since users of its API need no account on the machine.

Allowed are the catalogue, the workspace, and the folders in SLUICE_FILES, separated by colons. A user who runs a DAG from
the command line can read files there anyway, so the embedded Airflow allows all.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pipelines.store.workspace import Workspace

FILES_VARIABLE: Final = "SLUICE_FILES"
_FIELDS: Final = ("job", "jobs", "cluster", "flink", "measurements", "workloads")
_LISTS: Final = ("jobs", "workloads")
"""Of these, a text may name several, separated by commas."""
_SUFFIXES: Final = (".yaml", ".yml", ".json", ".sql", ".csv", ".jar")


def check_places(asked: Mapping[str, Any], workspace: "Workspace") -> None:
    """Refuse parameters that name a file elsewhere, before it is read.

    Raises:
        InvalidInput: with the parameter, the file, and the allowed folders.
    """
    from models.errors import InvalidInput

    allowed = list(_allowed(workspace))
    for field in _FIELDS:
        for name in _named(field, asked.get(field)):
            if isinstance(name, str) and _names_a_file(field, name) and _leaves(name, allowed):
                folders = ", ".join(map(str, allowed))
                raise InvalidInput(
                    f"the parameter {field!r} must name a file in {folders}, but got {name!r:.200}; put the file there, or "
                    f"add its folder to the environment variable {FILES_VARIABLE}"
                )


def _named(field: str, value: Any) -> Iterable[Any]:
    several = value if isinstance(value, list | tuple) else (value,)
    for one in several:
        if field in _LISTS and isinstance(one, str):
            yield from (name.strip() for name in one.split(","))
        else:
            yield one


def _allowed(workspace: "Workspace") -> Iterator[Path]:
    from pipelines.inputs.catalogue import catalogue_folder

    yield from (catalogue_folder().resolve() / kind for kind in ("jobs", "clusters"))
    if workspace.url.startswith("file://"):
        yield Path(workspace.url.removeprefix("file://")).resolve()
    yield from (Path(place).resolve() for place in os.environ.get(FILES_VARIABLE, "").split(":") if place)


def _names_a_file(field: str, name: str) -> bool:
    """Whether it is a path, not a name of the catalogue or of a workload pattern."""
    if field == "flink" and name.startswith(("http://", "https://", "connection:")):
        return False
    return field == "measurements" or "/" in name or Path(name.partition(":")[0]).suffix in _SUFFIXES


def _leaves(name: str, allowed: Iterable[Path]) -> bool:
    """Whether the path, with links resolved, is outside all of the folders."""
    try:
        target = Path(name).resolve()
    except (OSError, ValueError):
        return True
    return not any(target.is_relative_to(folder) for folder in allowed)
