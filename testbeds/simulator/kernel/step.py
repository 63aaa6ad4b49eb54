"""One step of the simulated dataflow: fire windows, compute costs, compute the flow, move records, record measures.

Numbers in brackets refer to docs/explanation/simulator.md.
"""

import numpy as np

from models.compiled import compiled_in_place, inlined
from testbeds.simulator.kernel.arrays import (
    AT_ONCE,
    BACKPRESSURED,
    BUSY,
    BYTES_OUT,
    CLOSED,
    CPU,
    EVENT_CLOCK,
    HITS,
    JOB_CLOCK,
    LAG,
    LIMITED,
    LOGGED,
    MEASURES,
    MISSES,
    READ,
    RECORDS_IN,
    RECORDS_OUT,
    STATE_TIME,
    WALL_CLOCK,
    WRITTEN,
    Plant,
    Row,
    SimulationState,
)
from testbeds.simulator.kernel.contention import FORGET, price_records, settle, share_workers
from testbeds.simulator.kernel.flow import deliver, from_sinks, limit_output, offer_firing
from testbeds.simulator.kernel.windows import aim_windows, mix_windows, pass_time, remember

DRAINED = 1e-3
"""Records in flight below which a job counts as drained, since rounding leaves some."""


def advance(
    p: Plant, s: SimulationState, reads: int, rate: float, noise: np.ndarray, steps: int, down: int = 0
) -> np.ndarray:
    """Run len(noise) reporting intervals of `steps` steps at a rate, records/s.

    Args:
        p: Plant.
        s: SimulationState, changed in place.
        reads: LIMITED: the rate limits the sources; LOGGED: records arrive in the log at this rate.
        noise: float64[intervals, tasks], factor on the CPU time of a record.
        down: steps at the beginning during which the job is down, while records still arrive in the log.

    Returns:
        float64[intervals, tasks, MEASURES]; LAG is the value at the end of the interval, all others are sums over it.
    """
    totals = np.zeros((noise.shape[0], noise.shape[1], MEASURES))
    run_intervals(p, s, reads, rate, noise, steps, down, totals)
    return totals


@compiled_in_place
def run_intervals(
    p: Plant, s: SimulationState, reads: int, rate: float, noise: np.ndarray, steps: int, down: int, totals: np.ndarray
) -> None:
    """`advance`, which adds to `totals`."""
    for interval in range(noise.shape[0]):
        for step in range(steps):
            if reads == LOGGED:
                arrive(p, s, rate)
            if interval * steps + step >= down:
                run_step(p, s, reads, rate, noise[interval], totals[interval])
            s.clock[WALL_CLOCK] += 1
            now = s.clock[WALL_CLOCK]
            if reads == LOGGED and p.stamped_on_arrival:
                now = read_up_to(p, s)
            s.clock[EVENT_CLOCK] = max(s.clock[EVENT_CLOCK], now)
        note_lag(p, s, reads, totals[interval])


def drain(p: Plant, s: SimulationState, noise: np.ndarray, most_steps: int) -> int:
    """Run until all records in flight have been processed, while sources read nothing; return the number of steps."""
    return run_until_drained(p, s, noise, most_steps, np.zeros((len(noise), MEASURES)))


@compiled_in_place
def run_until_drained(p: Plant, s: SimulationState, noise: np.ndarray, most_steps: int, ignored: np.ndarray) -> int:
    """`drain`, which adds to `ignored`."""
    for step in range(most_steps):
        if in_flight(s) < DRAINED:
            return step
        run_step(p, s, CLOSED, 0.0, noise, ignored)
    return most_steps


@compiled_in_place
def in_flight(s: SimulationState) -> float:
    """Records in buffers and of fired windows, and ends of windows, that are still to be processed."""
    waiting = 0.0
    for gate in s.gates:
        waiting += gate.queue
    for task in s.tasks:
        waiting += task.firing + task.marks
    return waiting


@compiled_in_place
def run_step(p: Plant, s: SimulationState, reads: int, rate: float, noise: np.ndarray, totals: np.ndarray) -> None:
    """One step of a running job."""
    pass_time(p, s)
    aim_windows(p, s)
    share_workers(p, s)
    price_records(p, s, noise)
    from_sinks(p, s)
    from_sources(p, s, reads, rate)
    account(p, s, totals)
    settle(p, s)
    mix_windows(p, s)
    s.clock[JOB_CLOCK] += 1


@inlined
def arrive(p: Plant, s: SimulationState, rate: float) -> None:
    """Let records arrive in the log, divided over the source tasks by their partitions."""
    s.came[0] += rate * p.step_s
    for operator in p.operators:
        if operator.source_share > 0.0:
            for t in range(operator.first, operator.end):
                s.tasks[t].log += rate * p.tasks[t].source_share * p.step_s


@inlined
def read_up_to(p: Plant, s: SimulationState) -> int:
    """Time of arrival, in steps, of the last record that the slowest source task has read (Eq. 12)."""
    behind = 0.0
    for operator in p.operators:
        if operator.source_share > 0.0:
            for t in range(operator.first, operator.end):
                behind = max(behind, s.tasks[t].log / p.tasks[t].source_share)
    read, rows = s.came[0] - behind, len(s.log)
    for row in range(rows):
        begin, before = s.log[row]
        end, after = (s.log[row + 1, 0], s.log[row + 1, 1]) if row + 1 < rows else (s.clock[WALL_CLOCK], s.came[0])
        if read <= after or row + 1 == rows:
            part = (read - before) / (after - before) if after > before else 0.0
            return int(begin + part * (end - begin) + 1e-6)
    return 0


@inlined
def note_lag(p: Plant, s: SimulationState, reads: int, totals: np.ndarray) -> None:
    """Record the lag of the sources."""
    for operator in p.operators:
        if operator.source_share > 0.0:
            for t in range(operator.first, operator.end):
                totals[t, LAG] = s.tasks[t].log if reads == LOGGED else s.tasks[t].due


@compiled_in_place
def from_sources(p: Plant, s: SimulationState, reads: int, rate: float) -> None:
    """Emit, process and deliver operator by operator."""
    for operator in p.operators:
        if operator.source_share > 0.0:
            offer(p, s, operator, reads, rate)
        else:
            gather(p, s, operator)
        if operator.emission == AT_ONCE:
            process_at_once(p, s, operator)
        else:
            process_window(p, s, operator)
        take(p, s, operator, reads)
        if operator.emission != AT_ONCE or operator.live_per_record > 0.0:
            remember(s, operator)


@inlined
def offer(p: Plant, s: SimulationState, operator: Row, reads: int, rate: float) -> None:
    """Records that a source task may emit: those in its log, or permits issued at its share of `rate` records/s.

    Permits accumulate up to a burst.
    """
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        if reads != LIMITED:
            task.want = task.log if reads == LOGGED else 0.0
            continue
        own = rate * p.tasks[t].source_share
        task.due += own * p.step_s
        task.permits = min(task.permits + own * p.step_s, own * max(p.source_burst_s, p.step_s))
        task.want = task.permits


@inlined
def gather(p: Plant, s: SimulationState, operator: Row) -> None:
    """Records that wait for each task, including those of this step."""
    for t in range(operator.first, operator.end):
        s.tasks[t].want = 0.0
        for i in range(operator.in_first, operator.in_end):
            e = p.in_edges[i]
            gate = s.gates[p.edges[e].first + t - operator.first]
            gate.queue += gate.arrived
            s.tasks[t].want += gate.queue


@inlined
def take(p: Plant, s: SimulationState, operator: Row, reads: int) -> None:
    """Remove processed records from the gates: first each gate's share from the backward pass, then from all evenly."""
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        task.taken += task.done
        if operator.source_share > 0.0:
            if reads == LIMITED:
                task.permits -= task.done
                task.due -= task.done
            elif reads == LOGGED:
                task.log -= task.done
            continue
        left, waiting = task.done, 0.0
        for i in range(operator.in_first, operator.in_end):
            gate = s.gates[p.edges[p.in_edges[i]].first + t - operator.first]
            part = min(gate.queue, gate.draw * task.done)
            gate.queue -= part
            left -= part
            waiting += gate.queue
        if left > 0.0 and waiting > 0.0:
            keep = max(1.0 - left / waiting, 0.0)
            for i in range(operator.in_first, operator.in_end):
                s.gates[p.edges[p.in_edges[i]].first + t - operator.first].queue *= keep


@inlined
def process_at_once(p: Plant, s: SimulationState, operator: Row) -> None:
    """An operator that emits at once for each record."""
    ratio = operator.selectivity
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        task.could_send = min(task.want, p.step_s / task.service) * ratio
        task.out = min(task.could_send, task.sendable)
    factor = limit_output(p, s, operator)
    deliver(p, s, operator, factor)
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        able = min(task.want, p.step_s / task.service)
        task.emitted = factor * task.out
        task.done = min(task.emitted / ratio, able) if ratio > 0.0 else able
        task.paid = task.done
        task.spent = min(task.done * task.service, p.step_s)
        task.blocked = 1.0 if task.done < able * (1 - 1e-9) else 0.0
        task.could_do = task.done if task.blocked > 0.0 else min(task.want, p.step_s / task.alone)
        if task.emitted < task.sendable * (1 - 1e-9):
            task.could_send = task.emitted


@inlined
def process_window(p: Plant, s: SimulationState, operator: Row) -> None:
    """An operator that emits when its windows fire. Fired records go first; while they wait, so does new input."""
    per_out = operator.fire_share / operator.selectivity if operator.selectivity > 0.0 else 0.0
    per_in = 1.0 - operator.fire_share
    offer_firing(p, s, operator)
    factor = limit_output(p, s, operator)
    deliver(p, s, operator, factor)
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        task.emitted = factor * task.out
        task.blocked = 1.0 if task.emitted < task.could_send * (1 - 1e-9) else 0.0
        waiting = task.firing * per_out + task.want * per_in
        task.firing -= task.emitted
        task.spent = task.emitted * task.fire
        task.done = 0.0
        if task.firing <= 1e-9 * (task.emitted + 1.0):
            task.firing = 0.0
            left, price = max(p.step_s - task.spent, 0.0), task.service * per_in
            task.done = task.want if task.want * price <= left else left / price
            task.spent += task.done * price
        task.spent = min(task.spent, p.step_s)
        task.paid = task.emitted * per_out + task.done * per_in
        task.could_do = task.paid if task.blocked > 0.0 else min(waiting, p.step_s / task.alone)
        if task.emitted < task.sendable * (1 - 1e-9):
            task.could_send = task.emitted


@inlined
def account(p: Plant, s: SimulationState, totals: np.ndarray) -> None:
    """Record the activity of each task in this step, and its demand on its worker."""
    dt, per_s = p.step_s, 1.0 / p.step_s
    for operator in p.operators:
        for t in range(operator.first, operator.end):
            task, own, row = s.tasks[t], p.tasks[t], totals[t]
            worker, paid = s.workers[own.worker], task.paid
            task.cores += FORGET * (task.could_do * task.work * per_s - task.cores)
            task.io += FORGET * (task.could_do * task.device * per_s - task.io)
            task.net += FORGET * (task.could_send * own.remote_bytes * per_s - task.net)
            worker.core_debt += paid * task.work
            worker.io_debt += paid * task.device
            worker.io_step += paid * task.device
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
                row[STATE_TIME] += (paid - missed) * p.access.hit_latency_s + paid * task.state_wait
