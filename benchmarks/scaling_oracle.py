"""A heuristic: few tasks with which a job could have been as fast, had all rates been known in advance.

`scaling_arena.py --oracle` prints them beside a policy's results, to show which cells can be won. A schedule that is found
bounds the fewest tasks from above; what bounds them from below is `pipelines.arena.bound`.

Notation: S deployments of a job that are as even as tasks can be, smallest to largest; n_s tasks and C_s the rate that they
take, measured on the simulator from a log that is never empty; r(t) the workload; D the downtime of a rescale.

A schedule is a list of (time, deployment). In each of its stretches the lag follows the fluid model

    lag(t + dt) = max(0, lag(t) + (r(t) - C(t)) dt)      C(t) = 0 while the job is down, then C_s / (1 + cold e^(-u / decay))

u seconds after the start, as fresh code is slow. Let w(t) = time until the job is up again + lag(t) / C. Of all schedules
with rescales at whole half minutes at which nothing waits, a dynamic programme over the time of the last rescale finds
the one of the lowest task-hours + price x records with w > the wait that is allowed; the price is the lowest one at
which these are at most 5 % of all. A finer or more daring schedule may save another percent or two. It is given the
rates and capacities that policies have to find out, and no noise.

Not for q5: the capacity of its deployments depends on their lag.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from models.compiled import compiled
from models.job import records_in_per_source_record
from models.scaling.limits import most_tasks
from models.scaling.provision import sustainable_rate
from pipelines.arena.replays.cell import Cell
from pipelines.arena.replays.compute import start
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator
from testbeds.simulator.settings import Physics

Array = NDArray[np.float64]

UNBOUNDED: Final = ("nexmark-q5",)
"""Jobs of which the capacity of a deployment is no single number."""
SHARE_LATE: Final = 0.05
GRID_S: Final = 30.0
STEP_S: Final = 5.0
SIZES: Final = 30
WARM_UP_S: Final = 120.0
MEASURED_S: Final = 120.0
OVERLOAD: Final = 1.3
"""Rate at which a deployment's capacity is measured, over the one that its nominal costs let it take."""


@dataclass(frozen=True)
class Deployments:
    """The first one is the job's initial deployment; the others ascend."""

    tasks: Array
    """n_s, shape (S,)."""
    capacity: Array
    """C_s, records/s at the sources together, shape (S,)."""


@dataclass(frozen=True)
class Schedule:
    """The best that was found."""

    task_hours: float
    late: float
    """Share of the records that wait longer than allowed."""
    rescales: int


def measured(cell: Cell) -> Deployments:
    """Capacities of even deployments of the cell's job, with the cell's seed: the same machines as in its replays."""
    job, slots, begin = cell.job, cell.cluster.slots, start(cell)
    ratio, most = records_in_per_source_record(job), most_tasks(job)
    nominal = sustainable_rate(job, slots)
    found = [dict(begin.parallelism)]
    for rate in nominal * np.geomspace(1 / 50, 1.1, SIZES):
        exact = {o.name: rate * ratio[o.name] * o.cost.cpu_s for o in job.operators}
        tasks = {name: min(max(1, math.ceil(n)), most.get(name, slots)) for name, n in exact.items()}
        if sum(tasks.values()) <= slots and tasks != found[-1]:
            found.append(tasks)
    capacities = []
    for tasks in found:
        configuration = Configuration(
            parallelism=tasks, memory_mb=begin.memory_mb, managed_memory_mb=dict(begin.managed_memory_mb)
        )
        offered = OVERLOAD * nominal * min(1.0, 1.2 * sum(tasks.values()) / slots)
        with Simulator(cell.cluster).deploy(job, configuration, run="oracle", seed=cell.seed) as run:
            run.serve(offered, WARM_UP_S)
            capacities.append(float(np.sum(run.serve(offered, MEASURED_S).read)) / MEASURED_S)
    return Deployments(np.array([float(sum(tasks.values())) for tasks in found]), np.array(capacities))


def fewest(cell: Cell, deployments: Deployments, most_wait_s: float) -> Schedule | None:
    """The schedule of the fewest task-hours found whose p95 is within `most_wait_s`; None if there is none."""
    physics = Physics()
    rates = np.repeat(np.array(cell.workload.rates), round(cell.workload.step_s / GRID_S))
    down = np.array([physics.rescaling.restart_s, physics.cold_slowdown, physics.cold_decay_s])
    late, clear = _stretches(rates, deployments.capacity, down, most_wait_s)
    total = float(np.sum(rates)) * GRID_S
    low, high, best = 1e-6, 1e4, None
    for _ in range(40):
        price = math.sqrt(low * high)
        tasks, share, rescales = _cheapest(deployments.tasks, late / total, clear, price * len(rates))
        if math.isfinite(tasks) and share <= SHARE_LATE:
            high, best = price, Schedule(tasks * GRID_S / 3600.0, share, int(rescales))
        else:
            low = price
    return best


@compiled
def _stretches(rates: Array, capacity: Array, down: Array, most_wait_s: float) -> tuple[Array, NDArray[np.bool_]]:
    """Records late, and whether nothing waits at the end, of the stretch from t with deployment s until u: (T, S, T + 1)."""
    restart_s, cold, decay_s = down
    ends = len(rates) + 1
    late, clear = np.zeros((len(rates), len(capacity), ends)), np.zeros((len(rates), len(capacity), ends), np.bool_)
    for t in range(len(rates)):
        for s in range(len(capacity)):
            lag, down_s, up_s, sum_late = 0.0, restart_s if t > 0 else 0.0, 0.0, 0.0
            for u in range(t, len(rates)):
                for _ in range(round(GRID_S / STEP_S)):
                    works_s = STEP_S - min(down_s, STEP_S)
                    down_s -= STEP_S - works_s
                    takes = capacity[s] / (1 + cold * math.exp(-up_s / decay_s)) if t > 0 else capacity[s]
                    up_s += works_s
                    lag = max(lag + rates[u] * STEP_S - takes * works_s, 0.0)
                    if down_s + lag / takes > most_wait_s:
                        sum_late += rates[u] * STEP_S
                late[t, s, u + 1], clear[t, s, u + 1] = sum_late, lag == 0.0
    return late, clear


@compiled
def _cheapest(tasks: Array, late: Array, clear: NDArray[np.bool_], price: float) -> tuple[float, float, float]:
    """Tasks x grid steps, share late and rescales of the cheapest schedule."""
    steps = late.shape[0]
    cost = np.full(steps + 1, np.inf)
    so_far = np.zeros((steps + 1, 3))
    cost[0] = 0.0
    for t in range(steps):
        if cost[t] == np.inf:
            continue
        for s in range(len(tasks) if t > 0 else 1):
            for u in range(t + 1, steps + 1):
                if u < steps and not clear[t, s, u]:
                    continue
                found = cost[t] + tasks[s] * (u - t) + price * late[t, s, u]
                if found < cost[u]:
                    cost[u] = found
                    so_far[u, 0] = so_far[t, 0] + tasks[s] * (u - t)
                    so_far[u, 1] = so_far[t, 1] + late[t, s, u]
                    so_far[u, 2] = so_far[t, 2] + (1.0 if t > 0 else 0.0)
    if cost[steps] == np.inf:
        return np.inf, 1.0, 0.0
    return so_far[steps, 0], so_far[steps, 1], so_far[steps, 2]
