"""Windows: panes that end when the watermark reaches a task, and hot keys that are windows.

Numbers in brackets refer to docs/simulator.md.
"""

import numpy as np
from numba import njit

from testbeds.simulator.arrays import ALL_PANES, AT_ONCE, MARKS, OLDEST_PANE, WINDOWS_MIXED, Plant, Row, State
from testbeds.simulator.flow import hot_gate


@njit(cache=True, nogil=True)
def pass_time(p: Plant, s: State) -> None:
    """End the panes that end now: state expires by the clock, windows when their watermark has been reached (Eq. 10)."""
    clock = s.clock[0]
    for operator in p.operators:
        if operator.panes == 0:
            continue
        ends = clock > 0 and clock % operator.pane_steps == 0
        for t in range(operator.first, operator.end):
            if operator.emission != AT_ONCE:
                if ends:
                    mark(p, s, operator, t)
                reach_marks(s, operator, t)
            elif ends:
                turn_pane(s, operator, t)


@njit(cache=True, nogil=True)
def mark(p: Plant, s: State, operator: Row, t: int) -> None:
    """Put a watermark behind the records that wait for task t."""
    task = s.tasks[t]
    if task.marks == MARKS:
        drop_mark(s, t)
        turn_pane(s, operator, t)
    waiting = 0.0
    for e in p.in_edges[operator.in_first : operator.in_end]:
        gate = s.gates[p.edges[e].first + t - operator.first]
        waiting += gate.queue
    s.marks[t, task.marks] = task.taken + waiting
    task.marks += 1


@njit(cache=True, nogil=True)
def drop_mark(s: State, t: int) -> None:
    """Forget the first watermark of task t."""
    task = s.tasks[t]
    for i in range(1, task.marks):
        s.marks[t, i - 1] = s.marks[t, i]
    task.marks -= 1


@njit(cache=True, nogil=True)
def reach_marks(s: State, operator: Row, t: int) -> None:
    """Fire for each watermark that task t has reached."""
    task = s.tasks[t]
    while task.marks > 0 and task.taken >= s.marks[t, 0] - 1e-6:
        drop_mark(s, t)
        turn_pane(s, operator, t)


@njit(cache=True, nogil=True)
def turn_pane(s: State, operator: Row, t: int) -> None:
    """End the youngest pane of task t: its window fires, and the oldest pane's records are forgotten."""
    task, n = s.tasks[t], operator.panes
    task.turned += 1
    oldest = operator.ring_first + (t - operator.first) * n + task.turned % n
    if operator.emission == ALL_PANES:
        task.firing += operator.selectivity * task.live / n
    elif operator.emission == OLDEST_PANE:
        task.firing += operator.selectivity * s.ring[oldest]
    task.live = max(task.live - s.ring[oldest], 0.0)
    s.ring[oldest] = 0.0


@njit(cache=True, nogil=True)
def remember(s: State, operator: Row, t: int, records: float) -> None:
    """Put records into the live state of a task."""
    task, n = s.tasks[t], operator.panes
    if n > 0:
        s.ring[operator.ring_first + (t - operator.first) * n + task.turned % n] += records
    task.live += records


@njit(cache=True, nogil=True)
def aim_windows(p: Plant, s: State) -> None:
    """Where hot keys are times or windows: the share of the hot records that each gate gets now (Eq. 11)."""
    for e in range(len(p.edges)):
        edge = p.edges[e]
        if edge.hot_share == 0.0 or edge.hot_records > 0.0:
            continue
        for j in range(edge.first, edge.end):
            s.gates[j].hot = 0.0
        if edge.window < 0:
            s.gates[hot_gate(edge, s.clock[0] // edge.hot_steps)].hot = 1.0
            continue
        newest, total = newest_window(p, s, edge), np.sum(s.mix[e])
        for slot in range(WINDOWS_MIXED):
            window = newest - (newest - slot) % WINDOWS_MIXED
            if total > 0.0:
                s.gates[hot_gate(edge, window)].hot += s.mix[e, slot] / total
            elif window == newest:
                s.gates[hot_gate(edge, window)].hot = 1.0


@njit(cache=True, nogil=True)
def newest_window(p: Plant, s: State, edge: Row) -> int:
    """Number of the last window that any task has fired."""
    operator = p.operators[edge.window]
    newest = 0
    for t in range(operator.first, operator.end):
        newest = max(newest, s.tasks[t].turned)
    return newest


@njit(cache=True, nogil=True)
def mix_windows(p: Plant, s: State) -> None:
    """Which windows the records on the way to an edge belong to: what was fired comes in, a share of all goes out."""
    for e in range(len(p.edges)):
        edge = p.edges[e]
        if edge.window < 0:
            continue
        fired, upstream = p.operators[edge.window], p.operators[edge.upstream]
        for t in range(fired.first, fired.end):
            s.mix[e, s.tasks[t].turned % WINDOWS_MIXED] += s.tasks[t].emitted
        waiting = 0.0
        for i in p.in_edges[upstream.in_first : upstream.in_end]:
            for j in range(p.edges[i].first, p.edges[i].end):
                waiting += s.gates[j].queue * upstream.selectivity * edge.share
        if edge.upstream == edge.window:
            waiting = 0.0
        sent = s.edges[e].sent
        if sent > 0.0:
            for slot in range(WINDOWS_MIXED):
                s.mix[e, slot] *= waiting / (waiting + sent)
