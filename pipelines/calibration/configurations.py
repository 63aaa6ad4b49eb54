"""The configurations of a calibration: one task of each operator first, then larger ones, the largest last."""

import math
from collections.abc import Mapping

from models.capacity.bids2 import bids2
from models.capacity.observation import OperatorRates
from models.errors import Infeasible
from models.job import Job, Operator, records_in_per_source_record
from pipelines.calibration.request import CalibrationRequest
from testbeds.protocol import Limits

SOURCE_MARGIN = 1.5
"""Sources can emit this multiple of the expected rate, so that they never limit the job."""
MOST_SOURCE_TASKS = 16
"""Most tasks of all sources together if the testbed has no limit, however slow sources seemed."""


def one_task_each(job: Job, limits: Limits, request: CalibrationRequest) -> dict[str, int]:
    """Tasks of each operator in the first configuration; sources have some more."""
    most = limits.max_source_tasks or MOST_SOURCE_TASKS
    sources = {o.name: min(request.source_tasks, _most_of(o, job, most)) for o in job.sources}
    return {o.name: sources.get(o.name, 1) for o in job.operators}


def larger_ones(
    job: Job,
    cpu_s: Mapping[str, float],
    source_rate_per_task: Mapping[str, float],
    single_mst: float,
    limits: Limits,
    request: CalibrationRequest,
) -> list[dict[str, int]]:
    """Tasks of each operator in the other configurations: budgets in equal steps up to the testbed's, each by BIDS2.

    Args:
        cpu_s: unit cost of each operator, seconds.
        source_rate_per_task: records/s of useful time.
        single_mst: MST of one task each, records/s.
        limits: of the testbed.

    Raises:
        Infeasible: there are too few slots for the requested number of configurations.
    """
    records_in = records_in_per_source_record(job)
    rates = tuple(
        OperatorRates(
            name=o.name, true_rate_per_task=1 / cpu_s[o.name], records_in_per_source_record=records_in[o.name]
        )
        for o in job.scaled_operators
    )
    most = {o.name: min(request.most_tasks, o.max_parallelism or request.most_tasks) for o in job.scaled_operators}
    fewest, largest, more = len(rates), min(limits.max_task_slots, sum(most.values())), request.configurations - 1
    if largest - fewest < more:
        raise Infeasible(
            f"{request.configurations} configurations of job {job.name!r} need at least {fewest + more} task slots, but there "
            f"are {largest} for at most {request.most_tasks} tasks of an operator; use a larger cluster or more tasks"
        )
    most_sources = limits.max_source_tasks or MOST_SOURCE_TASKS
    found = []
    for step in range(1, request.configurations):
        budget = fewest + (largest - fewest) * step // more
        tasks = bids2(rates, budget, most).parallelism
        expected = single_mst * budget / fewest
        found.append(
            {**_source_tasks(job, SOURCE_MARGIN * expected, source_rate_per_task, most_sources, request), **tasks}
        )
    return found


def _source_tasks(
    job: Job, rate: float, per_task: Mapping[str, float], most: int, request: CalibrationRequest
) -> dict[str, int]:
    wanted = {
        source.name: max(request.source_tasks, math.ceil(rate * source.rate_share / per_task[source.name]))
        for source in job.sources
    }
    return {source.name: min(wanted[source.name], _most_of(source, job, most)) for source in job.sources}


def _most_of(source: Operator, job: Job, most: int) -> int:
    """Most tasks of a source, if all sources together may have `most`."""
    share = max(1, most // len(job.sources))
    return min(share, source.max_parallelism or share)
