"""The lower bound of a cell: from its job, cluster, workload and seed to task-hours."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from pipelines.arena.bound.costs import OperatorLimits, buffered, operator_limits
from pipelines.arena.bound.deployments import Hull, hull
from pipelines.arena.bound.relaxation import fewest_task_s, merged
from pipelines.arena.bound.shares import fullest_shares
from pipelines.arena.replays.cell import HOUR_S, Cell
from pipelines.arena.replays.compute import PHYSICS, start, testbed, with_key_groups
from testbeds.protocol import Configuration
from testbeds.simulator.settings import Physics

SHORTEST_S: Final = 5.0
"""Least time between two rescales, whatever the cell says: policies are called once in a reporting interval."""


@dataclass(frozen=True)
class Bound:
    """No policy takes less."""

    task_hours: float
    """From the end of the burn-in on."""
    hull: Hull
    """Least mean tasks by mean rate."""

    def gap(self, task_hours: float) -> float:
        """How far a policy's task-hours are above the bound, as a share of the bound."""
        return task_hours / self.task_hours - 1.0


def lower_bound(cell: Cell, objective_s: float, attainment: float) -> Bound | None:
    """The bound on the task-hours of every policy that lets a share `attainment` of the records wait `objective_s` or less.

    The policy, its settings and the start of the cell do not matter, except that the start decides the key groups of a
    job that states none. None: no policy can attain it.

    Raises:
        ValueError: the objective is below 0, or the attainment is not in 0 to 1.
        Infeasible: as `run_cell`.
    """
    if objective_s < 0 or not 0 <= attainment <= 1:
        raise ValueError(
            f"objective_s >= 0 and 0 <= attainment <= 1 must hold, but got {objective_s:g} and {attainment:g}"
        )
    physics = PHYSICS[cell.rescale_mode]
    slots = cell.cluster.slots
    limits = _limits(cell, physics)
    dwell_s = max(cell.least_between_s, SHORTEST_S)
    period_s = dwell_s + physics.rescaling.restart_s
    arrived, seconds, recent, highest = _arrivals(cell, objective_s, period_s)
    # A deployment has no more to read in time than what arrives while it runs, and in the objective before.
    most = float(np.max(highest)) * (1 + objective_s / period_s)
    found = hull(cell.job, limits, slots, physics.rescaling.restart_s, dwell_s, physics, most)
    free_s = 0.0 if physics.rescaling.drain_counts else max(limit.forgiven_s for limit in limits)
    forgiven = highest * seconds * free_s / period_s
    waiting = _waiting(cell, limits, found, float(np.max(highest)), physics)
    task_s = fewest_task_s(arrived, seconds, recent, forgiven, waiting, attainment, found)
    return None if task_s is None else Bound(task_s / HOUR_S, found)


def _limits(cell: Cell, physics: Physics) -> tuple[OperatorLimits, ...]:
    """Those of the job on the machines of the cell's seed."""
    begin = start(cell)
    job = with_key_groups(cell.job, begin.parallelism)
    configuration = Configuration(
        parallelism=dict(begin.parallelism), memory_mb=begin.memory_mb, managed_memory_mb=dict(begin.managed_memory_mb)
    )
    with testbed(cell).deploy(job, configuration, run="bound", seed=cell.seed) as run:
        machine = run.machine_slowdown
    slots = cell.cluster.slots
    return operator_limits(job, slots, machine, fullest_shares(job, slots), physics)


def _arrivals(cell: Cell, objective_s: float, period_s: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A, dt, V of `relaxation`, and the highest rate about each step; float64[steps] each."""
    work, skipped = cell.workload, cell.burn_in_s
    ends = np.concatenate([[skipped], work.step_s * np.arange(1, len(work.rates) + 1)])
    ends = ends[ends >= skipped]
    rates = np.array(work.rates)[-(len(ends) - 1) :]
    arrived, seconds = merged(rates, np.diff(ends))
    times, total = (
        np.concatenate([[0.0], np.cumsum(np.diff(ends))]),
        np.concatenate([[0.0], np.cumsum(rates * np.diff(ends))]),
    )
    at = np.cumsum(seconds)
    recent = np.interp(at, times, total) - np.interp(at - objective_s, times, total)
    return (
        arrived,
        seconds,
        recent,
        _highest(np.array(work.rates), work.step_s, at + skipped, seconds, period_s + objective_s),
    )


def _highest(rates: np.ndarray, step_s: float, ends: np.ndarray, seconds: np.ndarray, about_s: float) -> np.ndarray:
    """Highest rate in each step and `about_s` around it."""
    first = np.maximum((ends - seconds - about_s) // step_s, 0).astype(int)
    last = np.minimum(np.ceil((ends + about_s) / step_s), len(rates)).astype(int)
    return np.array([np.max(rates[a:b]) for a, b in zip(first, last, strict=True)])


def _waiting(cell: Cell, limits: tuple[OperatorLimits, ...], hull: Hull, highest: float, physics: Physics) -> float:
    """W of `relaxation`, before an operator that can be short: what two deployments buffer, what waits in windows, and what hot
    keys are favourable by."""
    half = -(-cell.cluster.slots // 2)
    stored = buffered(cell.job, {o.name: half for o in cell.job.operators}, physics)
    short = [limit for limit in limits if limit.capacity[0] < hull.most]
    return hull.favour + max((2 * stored[limit.name] + limit.waiting_s * highest for limit in short), default=0.0)
