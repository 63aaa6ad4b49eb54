"""Whether what was seen of a job suffices to decide by it, and what may be decided."""

from models.scaling.control.granting import TaskBounds
from models.scaling.control.guard import Hold
from models.scaling.control.limits import ControlLimits
from pipelines.control.sensing import Sight


def unfit(sight: Sight, newest_s: float | None, limits: ControlLimits) -> Hold | None:
    """Why nothing can be decided; None if it can.

    Args:
        newest_s: when all counters were read that are newer than those before, by the clock of the process.
    """
    if sight.counts is None:
        return Hold("stale", sight.fault or "Flink does not answer")
    if not sight.runs:
        return Hold("restarting", f"not all tasks of the job run; it is {sight.counts.state.lower()}")
    if not any(v.is_source for v in sight.vertices):
        return Hold("restarting", "its sources have read all of their input, so that the job is about to end")
    if sight.ended:
        ended = ", ".join(sight.ended)
        return Hold(
            "restarting", f"{ended} has read all of its input, so that the rest of the job is measured from now on"
        )
    running = [task for v in sight.vertices for task in v.tasks if not task.finished]
    ran = [task.ran_s for task in running if task.ran_s is not None]
    if ran and min(ran) < limits.settle_s:
        return Hold("restarting", f"a task has run for {min(ran):.0f} s only, less than {limits.settle_s:g} s")
    required = (None if sight.slowly is None else sight.slowly.required) or {}
    for v in sight.vertices:
        if len(v.tasks) < required.get(v.id, 0):
            return Hold(
                "restarting",
                f"{sight.names[v.id]} runs with {len(v.tasks)} of {required[v.id]} requested tasks, since slots are missing",
            )
    age_s = 0.0 if newest_s is None else sight.time_s - newest_s
    if age_s > limits.stale_after_s:
        return Hold("stale", f"the newest metrics of all tasks are {age_s:.0f} s old")
    return None if sight.fault is None else Hold("partial", sight.fault)


def bounds_of(sight: Sight, limits: ControlLimits, *, on_demand: bool = False) -> TaskBounds:
    """How many tasks each vertex may have.

    Args:
        on_demand: whether TaskManagers are started as slots are requested, so that the allowed slots count as there.
    """
    vertices = [(sight.names[v.id], v) for v in sight.vertices]
    there = 0 if sight.slowly is None else sight.slowly.slots
    return TaskBounds.of(
        limits,
        max(there, limits.most_slots or 0) if on_demand else there,
        {name: v.max_parallelism for name, v in vertices},
        {name: v.slot_group for name, v in vertices},
    )
