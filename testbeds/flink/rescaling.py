"""Rescales a running job, live or by a savepoint and a restart."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from flink_client.rest.answers import RUNNING
from testbeds.flink.submission import Deployed, Submission, check_placed, placed_tasks, running_workers, task_workers
from testbeds.placing import Placed

_CHECKPOINT_S: Final = 120.0
_RUNNING_S: Final = 120.0


@dataclass(frozen=True)
class Arrangement:
    """Where the tasks of a configuration go, and how the job gets there."""

    placed: Placed | None
    """None: where Flink puts them."""
    live: bool
    """Whether the running TaskManagers suffice, and Flink's scheduler can change a running job."""
    prepare: Callable[[], None]
    """Starts the TaskManagers that it needs; called between savepoint and restart."""
    settle: Callable[[Deployed], None]
    """Lets new TaskManagers warm up; called after the restart."""


@dataclass(frozen=True)
class RescaledJob:
    """The job after a rescale."""

    deployed: Deployed
    downtime_s: float
    """Downtime: from the request for a checkpoint or savepoint until the last task ran, seconds."""
    tasks_since: float
    """Earliest start of its tasks (`time.monotonic`)."""


def rescaled(
    submission: Submission, deployed: Deployed, parallelism: Mapping[str, int], arrangement: Arrangement
) -> RescaledJob:
    """Run the job with other numbers of tasks; its sources are stopped meanwhile, so that nothing is read twice.

    Live if numbers of tasks change (Flink moves no task of a job whose numbers stay), else by a savepoint.

    Raises:
        SluiceError: the checkpoint or savepoint failed, or the job does not run again.
    """
    same = {name: v.parallelism for name, v in deployed.vertices.items()} == dict(parallelism)
    change = _live if arrangement.live and not same else _by_savepoint
    began = time.monotonic()
    after, started = change(submission, deployed, parallelism, arrangement)
    return RescaledJob(after, _running_since(submission, after) - began, started)


def _live(
    submission: Submission, deployed: Deployed, parallelism: Mapping[str, int], arrangement: Arrangement
) -> tuple[Deployed, float]:
    """The scheduler restarts the tasks from the last checkpoint. Returns the running job, and the time of the request."""
    rest = submission.cluster.rest
    rest.checkpoint(deployed.id, _CHECKPOINT_S)
    vertices = {name: replace(v, parallelism=parallelism[name]) for name, v in deployed.vertices.items()}
    workers = {} if arrangement.placed is None else task_workers(arrangement.placed)
    if workers:
        submission.cluster.place(placed_tasks(workers, vertices))
    wanted = {v.id: v.parallelism for v in vertices.values()}
    started = time.monotonic()
    rest.require(deployed.id, wanted)
    rest.wait_until_running(deployed.id, _RUNNING_S, wanted)
    after = replace(deployed, vertices=vertices, workers=workers or running_workers(rest, deployed.id, vertices))
    check_placed(rest, after)
    return after, started


def _by_savepoint(
    submission: Submission, deployed: Deployed, parallelism: Mapping[str, int], arrangement: Arrangement
) -> tuple[Deployed, float]:
    savepoint = submission.cluster.rest.savepoint(deployed.id, None, cancel=True)
    arrangement.prepare()
    started = time.monotonic()
    after = submission.start(parallelism, arrangement.placed, savepoint)
    arrangement.settle(after)
    return after, started


def _running_since(submission: Submission, deployed: Deployed) -> float:
    """When the last task of the job started to run, `time.monotonic`."""
    rest, latest = submission.cluster.rest, 0.0
    for vertex in deployed.vertices.values():
        running_s = [task.running_s for task in rest.subtasks(deployed.id, vertex.id) if task.state == RUNNING]
        latest = max(latest, time.monotonic() - min(running_s, default=math.inf))
    return latest
