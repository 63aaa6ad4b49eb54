"""The file of the Java kit's placement hook, with TaskManager and slot of each task; see `java/sluice/Placement.java`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from flink_client.rest.client import FlinkRest
from models.plan.slots import PlacedTask

PLACEMENT_FLAG: Final = "-Dsluice.placement="
"""Option of the JobManager's JVM that names the file."""


def placement_file(rest: FlinkRest) -> Path | None:
    """The file that the JobManager's hook reads; None without a hook."""
    options = rest.get("/jobmanager/environment")["jvm"]["options"]
    return next((Path(one.removeprefix(PLACEMENT_FLAG)) for one in options if one.startswith(PLACEMENT_FLAG)), None)


def placement_lines(tasks: Iterable[PlacedTask]) -> str:
    """Lines of the file, of tasks by vertex id; tasks that are not named go anywhere."""
    return "".join(
        f"{one.vertex} {one.subtask} {one.worker}{'' if one.slot is None else f' {one.slot}'}\n" for one in tasks
    )


def placement_text(cluster_slots: int, tasks: Iterable[PlacedTask]) -> str:
    """The content of the file."""
    return f"slots {cluster_slots}\n{placement_lines(tasks)}"


def write_placement(file: Path, lines: str) -> None:
    """Replace the file atomically, since the hook reads it whenever tasks are scheduled."""
    fresh = file.with_suffix(".new")
    fresh.write_text(lines, encoding="utf-8")
    fresh.rename(file)
