"""The twin of a job whose file states its costs, for measurements that come without samples.

BIDS2 deals out the slots of each size by the rates of operators that the simulator shows, as an exploration would.
"""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final

from models.capacity.bids2 import bids2
from models.capacity.growth.twin import TwinCurve
from models.capacity.observation import Observation, OperatorRates
from models.capacity.twin.fullest import FullestTask, Simulated, curve_of
from models.capacity.twin.ladder import larger_rungs, measured_rungs, tasks_of
from models.cluster import Worker
from models.errors import Infeasible, InvalidInput
from models.job import Job
from models.wording import amount
from pipelines.measuring.estimate import mst_settings, operator_rates, search_mst, source_rates_per_task
from pipelines.twin.simulation import Twin, in_production, machine_of_twin
from testbeds.protocol import Configuration
from testbeds.simulator import Physics, Simulator

BEYOND: Final = 2.0
"""Sizes are simulated until one takes so many times the target rate."""
MOST_GROWTH: Final = 100
"""At most so many times the slots that were measured."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class _Simulated:
    """A job's twin with what BIDS2 needs to configure it."""

    twin: Twin
    rates: tuple[OperatorRates, ...]

    def mst(self, slots: int, memory_mb: float, guess: float) -> float | None:
        """None where the job cannot use so many slots, or sustains no rate with them."""
        try:
            tasks, expected = tasks_of(self.twin.job, self.rates, slots)
        except Infeasible:
            return None
        return in_production(self.twin, tasks, memory_mb, min(guess, expected)) or None


def twin_of_job(
    job: Job, worker: Worker, observations: tuple[Observation, ...], memory_mb: float, rate: float, say: Say
) -> TwinCurve:
    """Simulate a job at the sizes that were measured, and at larger ones until the rate is passed.

    Args:
        worker: one of the equal workers that it was measured on.
        memory_mb: memory of one TaskManager that is asked for, MiB.
        rate: target, records/s.
        say: what is done with a line of progress.

    Raises:
        Infeasible: the job cannot use as many slots as were measured.
        InvalidInput: it sustains no rate at two of these sizes.
    """
    measured = [o.task_slots for o in measured_rungs(observations)]
    simulated = _simulated(job, worker, memory_mb, measured[-1])
    found: dict[int, float] = {}
    for slots in (*measured, *larger_rungs(measured[-1], MOST_GROWTH * measured[-1])):
        last = list(found)[-1:]
        guess = found[last[0]] * slots / last[0] if last else float("inf")
        mst = simulated.mst(slots, memory_mb, guess)
        if mst is None and slots > measured[-1]:
            break
        if mst is not None:
            found[slots] = mst
            say(f"twin: {slots} task slots take {amount(mst)} records/s")
        if slots > measured[-1] and mst is not None and mst >= BEYOND * rate:
            break
    if len(found) < 2:
        raise InvalidInput(
            f"the twin of job {job.name!r} must sustain a rate at two of the measured sizes at least, but does at "
            f"{len(found)}; check the job's costs, or leave the twin out"
        )
    return _over_memory(simulated, found, _memories(job, observations, memory_mb), memory_mb)


def _simulated(job: Job, worker: Worker, memory_mb: float, slots: int) -> _Simulated:
    """With rates as an exploration has them: those of the largest configuration, which BIDS2 makes of those of single tasks."""
    machine = machine_of_twin(Physics())
    twin = Twin(job, worker, machine, {s.name: float("inf") for s in job.sources})
    single, sources = _rates(twin, {o.name: 1 for o in job.scaled_operators}, memory_mb)
    best = bids2(single, max(slots, len(single)), job.max_parallelism)
    rates, _ = _rates(twin, best.parallelism, memory_mb)
    return _Simulated(Twin(job, worker, machine, sources), rates)


def _rates(
    twin: Twin, tasks: Mapping[str, int], memory_mb: float
) -> tuple[tuple[OperatorRates, ...], dict[str, float]]:
    job, slots = twin.job, sum(tasks.values())
    sources = {s.name: max(1, slots) for s in job.sources}
    testbed = Simulator(twin.cluster(slots), (memory_mb,), twin.machine)
    with testbed.deploy(job, Configuration({**sources, **tasks}, memory_mb), run="twin", seed=0) as run:
        _, windows = search_mst(run, mst_settings(job))
    return operator_rates(job, windows[-1].samples), source_rates_per_task(job, windows[-1].samples)


def _memories(job: Job, observations: tuple[Observation, ...], memory_mb: float) -> list[float]:
    """The sizes of memory to simulate: the least and the most that was measured, and the one asked for; it alone where no
    operator keeps state."""
    if all(o.state is None for o in job.operators):
        return [memory_mb]
    measured = [o.memory_mb for o in observations]
    return sorted({min(measured), memory_mb, max(measured)})


def _over_memory(simulated: _Simulated, found: dict[int, float], memories: list[float], memory_mb: float) -> TwinCurve:
    """The curve at all sizes of memory, given what was found with one."""
    rows: dict[float, dict[int, float]] = {memory_mb: found}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for memory in memories:
            if memory != memory_mb:
                like = partial(_like, simulated, memory)
                rows[memory] = {n: mst for n, mst in zip(found, pool.map(like, found.items()), strict=True) if mst}
    job, rates = simulated.twin.job, simulated.rates
    tasks = {n: tasks_of(job, rates, n)[0] for n in found if all(n in row for row in rows.values())}
    sizes = [[Simulated(n, tasks[n], rows[memory][n], lasts=True) for n in tasks] for memory in sorted(rows)]
    return curve_of(sorted(rows), sizes, FullestTask(job, rates))


def _like(simulated: _Simulated, memory_mb: float, size: tuple[int, float]) -> float | None:
    slots, mst = size
    return simulated.mst(slots, memory_mb, mst)
