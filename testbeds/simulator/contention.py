"""What one record costs a task now: its worker's cores, device and network are shared with the tasks beside it.

Numbers in brackets refer to docs/simulator.md.
"""

import numpy as np

from testbeds.simulator.arrays import JOB_CLOCK, Plant, Row, State
from testbeds.simulator.compiled import compiled

FORGET = 0.5
"""How much of what a task wanted before is forgotten in a step; without memory, shares swing and capacity is lost."""
LEAST_SHARE = 0.01
"""Of a worker's capacity, what is left while an overdraft of earlier steps is paid back."""


@compiled
def water_level(wanted: np.ndarray, capacity: float) -> float:
    """Level L with sum of min(wanted, L) = capacity; infinite where all can have what they want (Eq. 4)."""
    if np.sum(wanted) <= capacity:
        return np.inf
    level = capacity / len(wanted)
    while True:
        small, large = 0.0, 0
        for amount in wanted:
            if amount < level:
                small += amount
            else:
                large += 1
        raised = (capacity - small) / max(large, 1)
        if raised <= level * (1 + 1e-12):
            return level
        level = raised


@compiled
def fair_share(wanted: np.ndarray, capacity: float, debt: float, step_s: float) -> float:
    """Level for the next step, with what was overdrawn before taken off."""
    if capacity == np.inf:
        return np.inf
    return water_level(wanted, max(capacity - debt / step_s, LEAST_SHARE * capacity))


@compiled
def share_workers(p: Plant, s: State) -> None:
    """Clock speed and fair shares of cores, device and network on each worker, from the last step (Eq. 2, 4)."""
    for w in range(len(p.workers)):
        worker, state = p.workers[w], s.workers[w]
        n = worker.end - worker.first
        if n == 0:
            continue
        cores, io, net, active = np.empty(n), np.empty(n), np.empty(n), 0.0
        for i in range(n):
            task = s.tasks[p.worker_tasks[worker.first + i]]
            cores[i], io[i], net[i] = task.cores, task.io, task.net
            active += task.spent / p.step_s
        state.core_level = fair_share(cores, worker.cores, state.core_debt, p.step_s)
        state.io_level = fair_share(io, worker.io, state.io_debt, p.step_s)
        state.net_level = fair_share(net, worker.net, state.net_debt, p.step_s)
        state.speed = 1.0
        if worker.cores > 1.0 and worker.cores < np.inf:
            load = min(max(active - 1.0, 0.0) / (worker.cores - 1.0), 1.0)
            state.speed = 1.0 - p.full_load_slowdown * load


@compiled
def price_records(p: Plant, s: State, noise: np.ndarray) -> None:
    """What a record costs each task in this step (Eq. 1, 5)."""
    cold = 1.0 + p.cold_slowdown * np.exp(-s.clock[JOB_CLOCK] * p.step_s / p.cold_decay_s)
    for operator in p.operators:
        for t in range(operator.first, operator.end):
            task, own = s.tasks[t], p.tasks[t]
            worker = s.workers[own.worker]
            task.work = operator.cpu_s * cold * noise[t] / worker.speed
            flushing = operator.write_bytes * p.flush_s / own.memtable_bytes
            price_state(p, s, operator, t)
            task.alone = task.work + flushing + task.state_wait
            alone = task.work / min(worker.core_level, 1.0) + flushing
            task.service = max(alone + task.state_wait, task.device / worker.io_level)
            if operator.read_bytes > 0.0:
                task.state_wait = max(task.state_wait, task.service - alone)
            task.fire = task.service * operator.fire_share / operator.selectivity if operator.fire_share > 0.0 else 0.0
            task.sendable = np.inf
            if worker.net_level < np.inf and own.remote_bytes > 0.0:
                task.sendable = worker.net_level * p.step_s / own.remote_bytes


@compiled
def price_state(p: Plant, s: State, operator: Row, t: int) -> None:
    """What state asks of the device for a record of task t, and how long a read waits for it (Eq. 3)."""
    task, own = s.tasks[t], p.tasks[t]
    worker = s.workers[own.worker]
    task.hit, task.state_wait = 1.0, 0.0
    task.device = operator.write_bytes * p.write_amplification
    if operator.read_bytes == 0.0:
        return
    live = operator.hot_set * (task.live * operator.live_per_record + own.key_bytes)
    needed = p.cached_bytes_per_live_byte * live
    if needed > own.cache_bytes:
        task.hit = own.cache_bytes / needed
    if task.uncached > 0.0:
        task.uncached = min(task.uncached, live)
        task.hit *= 1.0 - task.uncached / live
    if task.hit == 1.0:
        return
    load = min(worker.io_used / p.workers[own.worker].io, p.most_io_load)
    task.state_wait = (1.0 - task.hit) * p.blocks_per_miss * p.block_latency_s / (1.0 - load)
    task.device += (1.0 - task.hit) * max(p.blocks_per_miss * p.block_bytes, operator.read_bytes)


@compiled
def settle(p: Plant, s: State) -> None:
    """What was used beyond a worker's capacity is owed in the next step; what was not used is lost."""
    for w in range(len(p.workers)):
        worker, state = p.workers[w], s.workers[w]
        state.core_debt = max(state.core_debt - worker.cores * p.step_s, 0.0)
        state.io_debt = max(state.io_debt - worker.io * p.step_s, 0.0)
        state.io_used += FORGET * (state.io_step / p.step_s - state.io_used)
        state.io_step = 0.0
        state.net_debt = max(state.net_debt - worker.net * p.step_s, 0.0)
