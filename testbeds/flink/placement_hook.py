"""The file of the Java kit's placement hook, with TaskManager and slot of each task; see `java/sluice/Placement.java`."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from flink_client.jobs.running import other_jobs
from flink_client.rest.client import FlinkRest
from models.plan.slots import PlacedTask

PLACEMENT_FLAG: Final = "-Dsluice.placement="
"""Option of the JobManager's JVM that names the file."""


def placement_file(rest: FlinkRest) -> Path | None:
    """The file that the JobManager's hook reads; None without a hook."""
    options = rest.get("/jobmanager/environment")["jvm"]["options"]
    return next((Path(one.removeprefix(PLACEMENT_FLAG)) for one in options if one.startswith(PLACEMENT_FLAG)), None)


def obstacle_to_writing(rest: FlinkRest, file: Path, job: str) -> str | None:
    """Why the file of the hook cannot be written for a job; None if it can.

    Args:
        job: Flink's id.
    """
    if not (file.is_file() and os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
        return f"the placement hook reads {file} on the JobManager's machine, which cannot be written from here"
    if others := other_jobs(rest, job):
        return f"the placement hook serves one job, but {', '.join(map(repr, others))} runs on the cluster, too"
    return None


def placement_lines(tasks: Iterable[PlacedTask]) -> str:
    """Lines of the file, of tasks by vertex id; tasks that are not named go anywhere."""
    return "".join(
        f"{one.vertex} {one.subtask} {one.worker}{'' if one.slot is None else f' {one.slot}'}\n" for one in tasks
    )


def placement_text(cluster_slots: int, tasks: Iterable[PlacedTask], *, fewer: bool = False) -> str:
    """The content of the file.

    Args:
        fewer: whether the job goes on with fewer tasks, or with tasks elsewhere, while slots are missing; else it waits.
    """
    head = [f"slots {cluster_slots}", *(["fewer"] if fewer else [])]
    return "".join(f"{line}\n" for line in head) + placement_lines(tasks)


def write_placement(file: Path, lines: str) -> None:
    """Replace the file atomically, since the hook reads it whenever tasks are scheduled."""
    fresh = file.with_suffix(".new")
    fresh.write_text(lines, encoding="utf-8")
    fresh.rename(file)
