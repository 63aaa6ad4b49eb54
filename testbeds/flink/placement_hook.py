"""The file of the Java kit's placement hook, with the TaskManager of each task; see `java/sluice/Placement.java`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from flink_client.rest import FlinkRest

PLACEMENT_FLAG: Final = "-Dsluice.placement="
"""Option of the JobManager's JVM that names the file."""


def placement_file(rest: FlinkRest) -> Path | None:
    """The file that the JobManager's hook reads; None without a hook."""
    options = rest.get("/jobmanager/environment")["jvm"]["options"]
    return next((Path(one.removeprefix(PLACEMENT_FLAG)) for one in options if one.startswith(PLACEMENT_FLAG)), None)


def placement_lines(slots: int, workers: Mapping[tuple[str, int], str]) -> str:
    """The content of the file.

    Args:
        slots: of the cluster.
        workers: TaskManager by vertex id and number of the task; tasks that are not named go anywhere.
    """
    return "".join([f"slots {slots}\n", *(f"{vertex} {task} {name}\n" for (vertex, task), name in workers.items())])


def write_placement(file: Path, lines: str) -> None:
    """Replace the file atomically, since the hook reads it whenever tasks are scheduled."""
    fresh = file.with_suffix(".new")
    fresh.write_text(lines, encoding="utf-8")
    fresh.rename(file)
