"""One step of the simulated dataflow: fire windows, price records, find what can move, move it, write it down.

Numbers in brackets refer to docs/simulator.md.
"""

import numpy as np
from numba import njit

from testbeds.simulator.arrays import (
    AT_ONCE,
    BACKPRESSURED,
    BUSY,
    BYTES_OUT,
    CPU,
    HITS,
    LAG,
    MEASURES,
    MISSES,
    READ,
    RECORDS_IN,
    RECORDS_OUT,
    STATE_TIME,
    WRITTEN,
    Plant,
    Row,
    State,
)
from testbeds.simulator.contention import price_records, settle, share_workers
from testbeds.simulator.flow import deliver, fire_service, firing_output, from_sinks, limit_output, sendable
from testbeds.simulator.windows import aim_windows, mix_windows, pass_time, remember


@njit(cache=True, nogil=True)
def advance(p: Plant, s: State, rate: float, noise: np.ndarray, steps: int) -> np.ndarray:
    """Run len(noise) reporting intervals of `steps` steps at an offered rate, records/s.

    Args:
        p: Plant.
        s: State, changed in place.
        noise: float64[intervals, tasks], factor on the CPU time of a record.

    Returns:
        float64[intervals, tasks, MEASURES]; LAG is the value at the end of the interval, all else sums over it.
    """
    totals = np.zeros((noise.shape[0], noise.shape[1], MEASURES))
    for interval in range(noise.shape[0]):
        for _ in range(steps):
            pass_time(p, s)
            aim_windows(p, s)
            share_workers(p, s)
            price_records(p, s, noise[interval])
            from_sinks(p, s)
            from_sources(p, s, rate)
            account(p, s, totals[interval])
            settle(p, s)
            mix_windows(p, s)
            s.clock[0] += 1
    return totals


@njit(cache=True, nogil=True)
def from_sources(p: Plant, s: State, rate: float) -> None:
    """Emit, process and deliver operator by operator (Eq. 9)."""
    for operator in p.operators:
        if operator.source_share > 0.0:
            offer(p, s, operator, rate * operator.source_share)
        else:
            gather(p, s, operator)
        if operator.emission == AT_ONCE:
            process_at_once(p, s, operator)
        else:
            process_window(p, s, operator)


@njit(cache=True, nogil=True)
def offer(p: Plant, s: State, operator: Row, rate: float) -> None:
    """A rate-limited source task: permits come at `rate` records/s, and are kept for a burst at most."""
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        task.due += rate * p.step_s
        task.permits = min(task.permits + rate * p.step_s, rate * max(p.source_burst_s, p.step_s))
        task.want = task.permits


@njit(cache=True, nogil=True)
def gather(p: Plant, s: State, operator: Row) -> None:
    """Records that wait for each task, those that came in this step included."""
    edges = p.in_edges[operator.in_first : operator.in_end]
    for t in range(operator.first, operator.end):
        s.tasks[t].want = 0.0
        for e in edges:
            gate = s.gates[p.edges[e].first + t - operator.first]
            gate.queue += gate.arrived
            s.tasks[t].want += gate.queue


@njit(cache=True, nogil=True)
def take(p: Plant, s: State, operator: Row, t: int, records: float) -> None:
    """Take records from the gates of a task: what the pass from the sinks promised each, then from all alike."""
    task = s.tasks[t]
    task.done = records
    task.taken += records
    if operator.source_share > 0.0:
        task.permits -= records
        task.due -= records
        return
    left, waiting = records, 0.0
    edges = p.in_edges[operator.in_first : operator.in_end]
    for e in edges:
        gate = s.gates[p.edges[e].first + t - operator.first]
        part = min(gate.queue, gate.draw * records)
        gate.queue -= part
        left -= part
        waiting += gate.queue
    if left > 0.0 and waiting > 0.0:
        for e in edges:
            s.gates[p.edges[e].first + t - operator.first].queue *= max(1.0 - left / waiting, 0.0)


@njit(cache=True, nogil=True)
def process_at_once(p: Plant, s: State, operator: Row) -> None:
    """An operator whose output follows its input at once."""
    ratio = operator.selectivity
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        task.could_send = min(task.want, p.step_s / task.service) * ratio
        task.out = min(task.could_send, sendable(p, s, t))
    factor = limit_output(p, s, operator)
    deliver(p, s, operator, factor)
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        able = min(task.want, p.step_s / task.service)
        task.emitted = factor * task.out
        records = min(task.emitted / ratio, able) if ratio > 0.0 else able
        take(p, s, operator, t, records)
        if operator.live_per_record > 0.0:
            remember(s, operator, t, records)
        task.paid = records
        task.spent = min(records * task.service, p.step_s)
        task.blocked = 1.0 if records < able * (1 - 1e-9) else 0.0
        task.could_do = records if task.blocked > 0.0 else min(task.want, p.step_s / task.alone)
        if task.emitted < sendable(p, s, t) * (1 - 1e-9):
            task.could_send = task.emitted


@njit(cache=True, nogil=True)
def process_window(p: Plant, s: State, operator: Row) -> None:
    """An operator that emits when its windows fire. The firing goes before new input, and while it waits, so does that."""
    per_out = operator.fire_share / operator.selectivity if operator.selectivity > 0.0 else 0.0
    per_in = 1.0 - operator.fire_share
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        task.could_send = firing_output(p, operator, task)
        task.out = min(task.could_send, sendable(p, s, t))
    factor = limit_output(p, s, operator)
    deliver(p, s, operator, factor)
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        task.emitted = factor * task.out
        task.blocked = 1.0 if task.emitted < task.could_send * (1 - 1e-9) else 0.0
        waiting = task.firing * per_out + task.want * per_in
        task.firing -= task.emitted
        task.spent = task.emitted * fire_service(operator, task)
        task.done = 0.0
        if task.firing <= 1e-9 * (task.emitted + 1.0):
            task.firing = 0.0
            left, price = max(p.step_s - task.spent, 0.0), task.service * per_in
            records = task.want if task.want * price <= left else left / price
            take(p, s, operator, t, records)
            remember(s, operator, t, records)
            task.spent += records * price
        task.spent = min(task.spent, p.step_s)
        task.paid = task.emitted * per_out + task.done * per_in
        task.could_do = task.paid if task.blocked > 0.0 else min(waiting, p.step_s / task.alone)
        if task.emitted < sendable(p, s, t) * (1 - 1e-9):
            task.could_send = task.emitted


@njit(cache=True, nogil=True)
def account(p: Plant, s: State, totals: np.ndarray) -> None:
    """Write down what each task did in this step, and what it wanted of its worker."""
    dt = p.step_s
    for operator in p.operators:
        for t in range(operator.first, operator.end):
            task, own, row = s.tasks[t], p.tasks[t], totals[t]
            worker, paid = s.workers[own.worker], task.paid
            task.cores = task.could_do * task.work / dt
            task.io = task.could_do * task.device / dt
            task.net = task.could_send * own.remote_bytes / dt
            worker.core_debt += paid * task.work
            worker.io_debt += paid * task.device
            worker.net_debt += task.emitted * own.remote_bytes
            row[RECORDS_IN] += task.done
            row[RECORDS_OUT] += task.emitted
            row[BYTES_OUT] += task.emitted * operator.sent_bytes
            row[BUSY] += task.spent
            row[BACKPRESSURED] += task.blocked * (dt - task.spent)
            row[CPU] += paid * task.work
            row[READ] += paid * operator.read_bytes
            row[WRITTEN] += paid * operator.write_bytes
            if operator.read_bytes > 0.0:
                missed = paid * (1.0 - task.hit)
                row[HITS] += paid - missed
                row[MISSES] += missed
                row[STATE_TIME] += (paid - missed) * p.hit_latency_s + missed * p.miss_latency_s
            row[LAG] = task.due
