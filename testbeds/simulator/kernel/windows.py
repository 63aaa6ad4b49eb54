"""Windows: panes that end when the watermark reaches a task, and hot keys that are windows.

Numbers in brackets refer to docs/explanation/simulator.md.
"""

import numpy as np

from models.compiled import compiled_in_place, inlined
from testbeds.simulator.kernel.arrays import (
    ALL_PANES,
    AT_ONCE,
    BELT_ROWS,
    EVENT_CLOCK,
    LAST_EVENT,
    MARKS,
    OLDEST_PANE,
    WINDOWS_MIXED,
    Plant,
    Row,
    SimulationState,
)
from testbeds.simulator.kernel.flow import hot_gate


@compiled_in_place
def pass_time(p: Plant, s: SimulationState) -> None:
    """End panes by event time: state expires at once, windows fire when their watermark arrives (Eq. 9)."""
    now, last = s.clock[EVENT_CLOCK], s.clock[LAST_EVENT]
    for operator in p.operators:
        if operator.panes == 0:
            continue
        ends = min(now // operator.pane_steps - last // operator.pane_steps, operator.panes)
        for t in range(operator.first, operator.end):
            if operator.emission != AT_ONCE:
                for _ in range(ends):
                    mark(p, s, operator, t)
                if s.tasks[t].marks > 0:
                    reach_marks(s, operator, t)
            else:
                for _ in range(ends):
                    turn_pane(s, operator, t)
    s.clock[LAST_EVENT] = now


@compiled_in_place
def mark(p: Plant, s: SimulationState, operator: Row, t: int) -> None:
    """Put a watermark behind the records that wait for task t."""
    task = s.tasks[t]
    if task.marks == MARKS:
        drop_mark(s, t)
        turn_pane(s, operator, t)
    waiting = 0.0
    for i in range(operator.in_first, operator.in_end):
        e = p.in_edges[i]
        gate = s.gates[p.edges[e].first + t - operator.first]
        waiting += gate.queue
    s.marks[t, task.marks] = task.taken + waiting
    task.marks += 1


@compiled_in_place
def drop_mark(s: SimulationState, t: int) -> None:
    """Forget the first watermark of task t."""
    task = s.tasks[t]
    for i in range(1, task.marks):
        s.marks[t, i - 1] = s.marks[t, i]
    task.marks -= 1


@compiled_in_place
def reach_marks(s: SimulationState, operator: Row, t: int) -> None:
    """Fire for each watermark that task t has reached."""
    task = s.tasks[t]
    while task.marks > 0 and task.taken >= s.marks[t, 0] * (1 - 1e-12) - 1e-6:
        drop_mark(s, t)
        turn_pane(s, operator, t)


@compiled_in_place
def turn_pane(s: SimulationState, operator: Row, t: int) -> None:
    """End the youngest pane of task t: its window fires, and the oldest pane's records are forgotten (Eq. 10)."""
    task, n = s.tasks[t], operator.panes
    task.turned += 1
    oldest = operator.ring_first + (t - operator.first) * n + task.turned % n
    task.pane = oldest
    if operator.emission == ALL_PANES:
        task.firing += operator.selectivity * task.live / n
    elif operator.emission == OLDEST_PANE:
        task.firing += operator.selectivity * s.ring[oldest]
    task.live = max(task.live - s.ring[oldest], 0.0)
    s.ring[oldest] = 0.0


@inlined
def remember(s: SimulationState, operator: Row) -> None:
    """Add the records taken to the live state of each task."""
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        task.live += task.done
        if operator.panes > 0:
            s.ring[task.pane] += task.done


@compiled_in_place
def aim_windows(p: Plant, s: SimulationState) -> None:
    """The share of hot records that each gate gets now, if hot keys are times or windows (Eq. 11)."""
    for e in range(len(p.edges)):
        edge = p.edges[e]
        if edge.hot_share == 0.0 or edge.hot_records > 0.0:
            continue
        for j in range(edge.first, edge.end):
            s.gates[j].hot = 0.0
        if edge.window < 0:
            s.gates[hot_gate(edge, s.clock[EVENT_CLOCK] // edge.hot_steps)].hot = 1.0
            continue
        newest, total = newest_window(p, s, edge), np.sum(s.mix[e])
        for slot in range(WINDOWS_MIXED):
            window = newest - (newest - slot) % WINDOWS_MIXED
            if total > 0.0:
                s.gates[hot_gate(edge, window)].hot += s.mix[e, slot] / total
            elif window == newest:
                s.gates[hot_gate(edge, window)].hot = 1.0


@compiled_in_place
def newest_window(p: Plant, s: SimulationState, edge: Row) -> int:
    """Number of the last window that any task has fired."""
    operator = p.operators[edge.window]
    newest = 0
    for t in range(operator.first, operator.end):
        newest = max(newest, s.tasks[t].turned)
    return newest


@compiled_in_place
def mix_windows(p: Plant, s: SimulationState) -> None:
    """Move the belts, which track the windows of the records in flight to an edge (Eq. 11).

    Records fired in this step are added at the end of a belt; those that the edge has sent leave at its head.
    """
    for e in range(len(p.edges)):
        edge, belt = p.edges[e], s.edges[e]
        if edge.window < 0:
            continue
        load_belt(p, s, e)
        upstream, waiting = p.operators[edge.upstream], 0.0
        if edge.upstream != edge.window:
            for i in range(upstream.in_first, upstream.in_end):
                feeding = p.edges[p.in_edges[i]]
                for j in range(feeding.first, feeding.end):
                    waiting += s.gates[j].queue * upstream.selectivity * edge.share
        if belt.sent > 0.0:
            leaving = belt.load * belt.sent / (belt.sent + waiting)
            look_at_head(s, e, leaving, True)
            look_at_head(s, e, leaving, False)


@compiled_in_place
def load_belt(p: Plant, s: SimulationState, e: int) -> None:
    """Add the records fired in this step at the end of the belt of edge e."""
    fired, belt = p.operators[p.edges[e].window], s.edges[e]
    amount = 0.0
    for t in range(fired.first, fired.end):
        amount += s.tasks[t].emitted
    if amount <= 0.0:
        return
    if belt.rows < BELT_ROWS:
        belt.rows += 1
        s.belt[e, (belt.head + belt.rows - 1) % BELT_ROWS] = 0.0
    row = (belt.head + belt.rows - 1) % BELT_ROWS
    for t in range(fired.first, fired.end):
        s.belt[e, row, s.tasks[t].turned % WINDOWS_MIXED] += s.tasks[t].emitted
    belt.load += amount


@compiled_in_place
def look_at_head(s: SimulationState, e: int, amount: float, leaves: bool) -> None:
    """Write the windows of the first `amount` records on the belt to s.mix; if it `leaves`, remove them."""
    belt, left, row = s.edges[e], amount, s.edges[e].head
    s.mix[e] = 0.0
    for _ in range(belt.rows):
        here = np.sum(s.belt[e, row])
        part = 1.0 if here <= left else left / here
        for slot in range(WINDOWS_MIXED):
            s.mix[e, slot] += part * s.belt[e, row, slot]
        if leaves:
            for slot in range(WINDOWS_MIXED):
                s.belt[e, row, slot] *= 1.0 - part
            belt.load = max(belt.load - part * here, 0.0)
            if part == 1.0:
                belt.head = (belt.head + 1) % BELT_ROWS
                belt.rows -= 1
        left -= part * here
        row = (row + 1) % BELT_ROWS
        if left <= 0.0:
            break
