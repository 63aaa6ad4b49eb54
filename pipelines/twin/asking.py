"""The sizes that a twin's answers fall on. They are simulated, too, since between sizes its curve is interpolated."""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final

from models.capacity.growth.dataset import Dataset
from models.capacity.growth.twin import TwinCurve
from models.capacity.selection import select
from models.capacity.sizing import Margin, task_slots_for
from models.errors import Infeasible
from models.job import Job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.twin.rungs import Rung

NEAR: Final = 1.01
"""Sizes with a smaller ratio count as one."""


def answers(request: PlanRequest, job: Job, data: Dataset, curve: TwinCurve) -> set[int]:
    """The task slots for the request's rate, with each memory that the twin was simulated with; those beyond its largest size
    are left out."""
    model = select(data, twin=curve).model
    margin = Margin.asked(request.risk, request.headroom, model, request.catch_up)
    found = set()
    for memory_mb in curve.memory_mb:
        with suppress(Infeasible):
            found.add(task_slots_for(model, memory_mb, request.rate, margin, len(job.scaled_operators)))
    return {n for n in found if n < curve.task_slots[-1]}


def apart(sizes: Iterable[int], row: Sequence[Rung], most_measured: int) -> list[int]:
    """The sizes above those that were measured which are not near a simulated one, ascending."""
    known = [rung.task_slots for rung in row]
    return [
        n for n in sorted(sizes) if n > most_measured and all(abs(math.log(n / k)) >= math.log(NEAR) for k in known)
    ]
