"""Flink's setting of the parallelism of a job's vertices, a map by vertex id."""

import re
from collections.abc import Mapping
from typing import Final

from models.errors import InvalidInput

OVERRIDES_OPTION: Final = "pipeline.jobvertex-parallelism-overrides"
_IGNORED: Final = ((2, 0), (2, 3))
"""First and last release that ignore it when a program is submitted: they override job graphs only (FLINK-38770)."""


def overrides(parallelism: Mapping[str, int]) -> str:
    """Value of OVERRIDES_OPTION: `vertexId:parallelism,...`."""
    return ",".join(f"{vertex}:{tasks}" for vertex, tasks in parallelism.items())


def parsed_overrides(text: str, where: str) -> dict[str, int]:
    """Tasks by vertex id, of `vertexId:tasks,...`.

    Raises:
        InvalidInput: it has another form.
    """
    parts = [part.strip().partition(":") for part in text.split(",") if part.strip()]
    try:
        return {vertex.strip(): int(tasks) for vertex, _, tasks in parts}
    except ValueError as error:
        raise InvalidInput(
            f"{where}: {OVERRIDES_OPTION} must be vertexId:tasks,..., but is {text!r:.200}; correct it in the resource"
        ) from error


def ignored_at_start(flink_version: str) -> str | None:
    """Why a job that is started on this Flink, or again, does not get the tasks that overrides state; None if it does.

    Args:
        flink_version: such as `2.3.0`, or `v2_3` as in a `FlinkDeployment`.
    """
    first, last = _IGNORED
    numbers = tuple(int(number) for number in re.findall(r"\d+", flink_version)[:2])
    if not first <= numbers <= last:
        return None
    return f"Flink {flink_version} ignores {OVERRIDES_OPTION} when a job starts (FLINK-38770), so it would not get these tasks"
