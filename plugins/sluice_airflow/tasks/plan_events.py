"""Events of the asset `sluice-plan`, which several DAGs read, and files beside plans."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sluice_airflow.unread import what_is_understood

if TYPE_CHECKING:
    from pipelines.store.workspace import Workspace


def plan_of(extra: Mapping[str, Any]) -> tuple[str, int]:
    """Job and version of the plan whose URI an event carries.

    Raises:
        InvalidInput: it carries none.
    """
    from models.errors import InvalidInput

    found = re.search(r"/plans/([^/]+)/v(\d+)\.json$", str(extra.get("uri")))
    if found is None:
        raise InvalidInput(
            f"a plan's event must carry its URI, .../plans/JOB/v000001.json, but got {dict(extra)!r:.200}"
        )
    return found.group(1), int(found.group(2))


def plans_of(extras: Sequence[Mapping[str, Any]]) -> list[tuple[str, int]]:
    """Jobs and versions of the plans that events carry; raises as `what_is_understood`."""
    return what_is_understood(extras, plan_of)


def opened(uri: str) -> "tuple[Workspace, str]":
    """The workspace and the key of a file beside a plan."""
    from pipelines.store.workspace import Workspace

    root, _, key = uri.rpartition("/plans/")
    return Workspace(root), f"plans/{key}"
