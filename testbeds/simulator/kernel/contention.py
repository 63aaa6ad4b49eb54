"""The present cost of one record at a task, which shares its worker's cores, device and network with other tasks.

Numbers in brackets refer to docs/explanation/simulator.md.
"""

import numpy as np

from models.compiled import compiled_in_place
from testbeds.simulator.kernel.arrays import JOB_CLOCK, Plant, Row, SimulationState, StatePrices

FORGET = 0.5
"""Smoothing factor per step of the demands of tasks; without smoothing, shares oscillate and capacity is lost."""
LEAST_SHARE = 0.01
"""Least share of a worker's capacity while an overdraft of earlier steps is paid back."""


@compiled_in_place
def water_level(s: SimulationState, own: np.ndarray, capacity: float) -> float:
    """Level L with sum of min(wanted, L) = capacity over a worker's own tasks, which want more than that (Eq. 4)."""
    level = capacity / len(own)
    while True:
        small, large = 0.0, 0
        for t in own:
            amount = s.tasks[t].wanted
            if amount < level:
                small += amount
            else:
                large += 1
        raised = (capacity - small) / max(large, 1)
        if raised <= level * (1 + 1e-12):
            return level
        level = raised


@compiled_in_place
def in_reach(capacity: float, debt: float, step_s: float) -> float:
    """Capacity for the next step, less the overdraft or plus the remainder of earlier steps."""
    return capacity if capacity == np.inf else max(capacity - debt / step_s, LEAST_SHARE * capacity)


@compiled_in_place
def share_workers(p: Plant, s: SimulationState) -> None:
    """Clock speed and fair shares of cores, device and network on each worker, from the last step (Eq. 2, 4)."""
    for w in range(len(p.workers)):
        worker, state = p.workers[w], s.workers[w]
        if worker.first == worker.end:
            continue
        own = p.worker_tasks[worker.first : worker.end]
        cores, io, net, active = 0.0, 0.0, 0.0, 0.0
        for t in own:
            task = s.tasks[t]
            cores += task.cores
            io += task.io
            net += task.net
            active += (task.spent - task.paid * p.tasks[t].external_wait_s) / p.step_s
        state.core_level = state.io_level = state.net_level = np.inf
        reach = in_reach(worker.cores, state.core_debt, p.step_s)
        if cores > reach:
            for t in own:
                s.tasks[t].wanted = s.tasks[t].cores
            state.core_level = water_level(s, own, reach)
        reach = in_reach(worker.io, state.io_debt, p.step_s)
        if io > reach:
            for t in own:
                s.tasks[t].wanted = s.tasks[t].io
            state.io_level = water_level(s, own, reach)
        reach = in_reach(worker.net, state.net_debt, p.step_s)
        if net > reach:
            for t in own:
                s.tasks[t].wanted = s.tasks[t].net
            state.net_level = water_level(s, own, reach)
        state.speed = 1.0
        if worker.cores > 1.0 and worker.cores < np.inf:
            load = min(max(active - 1.0, 0.0) / (worker.cores - 1.0), 1.0)
            state.speed = 1.0 - p.full_load_slowdown * load


@compiled_in_place
def price_records(p: Plant, s: SimulationState, noise: np.ndarray) -> None:
    """The cost of a record at each task in this step (Eq. 1, 5)."""
    step_s = p.step_s
    cold = 1.0 + p.cold_slowdown * np.exp(-s.clock[JOB_CLOCK] * p.step_s / p.cold_decay_s)
    for operator in p.operators:
        for t in range(operator.first, operator.end):
            task, own = s.tasks[t], p.tasks[t]
            worker = s.workers[own.worker]
            task.work = operator.cpu_s * cold * noise[t] / worker.speed
            task.alone = task.work + own.external_wait_s
            task.service = task.work if worker.core_level >= 1.0 else task.work / worker.core_level
            task.service += own.external_wait_s
            if operator.read_bytes > 0.0 or operator.write_bytes > 0.0:
                io_load = worker.io_used / p.workers[own.worker].io
                price_state(p.access, operator, own, task, io_load, worker.io_level)
            task.fire = task.service * operator.fire_share / operator.selectivity if operator.fire_share > 0.0 else 0.0
            task.sendable = np.inf
            if worker.net_level < np.inf and own.remote_bytes > 0.0:
                task.sendable = worker.net_level * step_s / own.remote_bytes


@compiled_in_place
def price_state(costs: StatePrices, operator: Row, own: Row, task: Row, io_load: float, io_level: float) -> None:
    """The cost of state access per record of a task (Eq. 3, 5).

    Args:
        io_load: utilisation of the device of the task's worker.
        io_level: device bytes/s that the task can have.
    """
    flushing = operator.write_bytes * costs.flush_s / own.memtable_bytes
    task.hit, task.state_wait = 1.0, 0.0
    task.device = operator.write_bytes * costs.write_amplification
    if operator.read_bytes > 0.0:
        live = operator.hot_set * (task.live * operator.live_per_record + own.key_bytes)
        needed = costs.cached_bytes_per_live_byte * live
        if needed > own.cache_bytes:
            task.hit = own.cache_bytes / needed
            missed = 1.0 - task.hit
            alone = missed * costs.blocks_per_miss * costs.block_latency_s
            task.state_wait = alone / (1.0 - min(io_load, costs.most_io_load))
            task.device += missed * max(costs.blocks_per_miss * costs.block_bytes, operator.read_bytes)
    task.alone += flushing + task.state_wait
    task.service += flushing
    task.state_wait = max(task.state_wait, task.device / io_level - task.service)
    task.service += task.state_wait


@compiled_in_place
def settle(p: Plant, s: SimulationState) -> None:
    """Use beyond a worker's capacity is subtracted in the next step. Unused capacity is lost, except for cores that tasks had
    to share: shares are fixed for a step, so the unused rest is added to the next one.
    """
    for w in range(len(p.workers)):
        worker, state = p.workers[w], s.workers[w]
        if worker.first == worker.end:
            continue
        capacity = worker.cores * p.step_s
        state.core_debt = max(state.core_debt - capacity, -capacity if state.core_level < np.inf else 0.0)
        state.io_debt = max(state.io_debt - worker.io * p.step_s, 0.0)
        state.io_used += FORGET * (state.io_step / p.step_s - state.io_used)
        state.io_step = 0.0
        state.net_debt = max(state.net_debt - worker.net * p.step_s, 0.0)
