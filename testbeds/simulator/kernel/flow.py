"""The flow of a step: from the sinks to the sources, how much each task can take and each edge can carry.

Numbers in brackets refer to docs/explanation/simulator.md.
"""

import numpy as np

from models.compiled import compiled_in_place, inlined
from testbeds.simulator.kernel.arrays import AT_ONCE, FORWARD, Plant, Row, SimulationState


@compiled_in_place
def hot_gate(edge: Row, key: int) -> int:
    """Gate of the edge that its key-th hot key goes to: splitmix64 of the number, then Flink's key groups."""
    x = edge.key_seed + np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    group = np.int64(x % np.uint64(edge.key_groups))
    gate: int = edge.first + group * (edge.end - edge.first) // edge.key_groups
    return gate


@compiled_in_place
def follow_hot_keys(p: Plant, s: SimulationState, e: int, flow: float, limited: bool) -> tuple[float, int, float]:
    """Step through the hot keys among `flow` records, and count them at their gates (Eq. 8).

    Returns:
        Records sent (fewer than `flow` where `limited` and a task has no room for its key), number of the key reached,
        records until the next one.
    """
    edge, key, left = p.edges[e], s.edges[e].key, s.edges[e].left
    even = 1.0 - edge.hot_share
    for j in range(edge.first, edge.end):
        s.gates[j].hot = 0.0
    sent = 0.0
    while sent < flow:
        j = hot_gate(edge, key)
        gate, part = s.gates[j], min(left, flow - sent)
        if limited:
            rest = max(gate.free - gate.hot - even * p.gates[j].share * sent, 0.0)
            most = rest / (edge.hot_share + even * p.gates[j].share)
            if most < part:
                gate.hot += edge.hot_share * most
                return sent + most, key, left - most
        sent += part
        gate.hot += edge.hot_share * part
        left -= part
        if left <= 1e-9 * edge.hot_records:
            key, left = key + 1, edge.hot_records
    return flow, key, left


@compiled_in_place
def passable(p: Plant, s: SimulationState, e: int, flow: float) -> float:
    """How much of `flow` records edge e can carry until one of its tasks, or all its buffers together, are full (Eq. 7)."""
    edge, sent = p.edges[e], flow
    by_records = edge.hot_records > 0.0
    if by_records:
        sent, _, _ = follow_hot_keys(p, s, e, flow, True)
    total = edge.room
    for j in range(edge.first, edge.end):
        gate, hot, share = s.gates[j], 0.0, (1.0 - edge.hot_share) * p.gates[j].share
        if by_records:
            hot = gate.hot
        elif edge.hot_share > 0.0:
            share += edge.hot_share * gate.hot
        if share > 0.0 and share * sent + hot > gate.free:
            sent = max(gate.free - hot, 0.0) / share
        total += gate.free - p.gates[j].room
    passed: float = max(min(sent, total / edge.copies), 0.0)
    return passed


@compiled_in_place
def send(p: Plant, s: SimulationState, e: int, flow: float) -> None:
    """Let `flow` records arrive at the gates of edge e, and its hot keys move on."""
    edge = p.edges[e]
    by_records = edge.hot_records > 0.0
    if by_records:
        _, s.edges[e].key, s.edges[e].left = follow_hot_keys(p, s, e, flow, False)
    for j in range(edge.first, edge.end):
        gate = s.gates[j]
        gate.arrived = (1.0 - edge.hot_share) * p.gates[j].share * flow
        if by_records:
            gate.arrived += gate.hot
        elif edge.hot_share > 0.0:
            gate.arrived += edge.hot_share * gate.hot * flow
    s.edges[e].sent = flow


@inlined
def total_output(operator: Row, s: SimulationState) -> float:
    """Records that the tasks of an operator may send."""
    total = 0.0
    for t in range(operator.first, operator.end):
        total += s.tasks[t].out
    return total


@inlined
def limit_output(p: Plant, s: SimulationState, operator: Row) -> float:
    """Share of the tasks' `out` that the edges of an operator let through (Eq. 7).

    A forward edge limits each task by itself, and `out` is lowered there. All other edges limit the operator as a whole:
    each of its tasks soon holds a record for the fullest task downstream, and waits with it.
    """
    for i in range(operator.out_first, operator.out_end):
        e = p.out_edges[i]
        edge = p.edges[e]
        if edge.kind == FORWARD:
            for t in range(operator.first, operator.end):
                free = s.gates[edge.first + t - operator.first].free
                s.tasks[t].out = min(s.tasks[t].out, free / edge.share)
    total = total_output(operator, s)
    factor = 1.0
    if total > 0.0:
        for i in range(operator.out_first, operator.out_end):
            e = p.out_edges[i]
            if p.edges[e].kind != FORWARD:
                wanted = total * p.edges[e].share
                factor = min(factor, passable(p, s, e, wanted) / wanted)
    return factor


@inlined
def deliver(p: Plant, s: SimulationState, operator: Row, factor: float) -> None:
    """Send `factor` of `out` of an operator's tasks along all its edges."""
    total = total_output(operator, s)
    for i in range(operator.out_first, operator.out_end):
        e = p.out_edges[i]
        edge = p.edges[e]
        if edge.kind == FORWARD:
            for t in range(operator.first, operator.end):
                s.gates[edge.first + t - operator.first].arrived = factor * s.tasks[t].out * edge.share
        else:
            send(p, s, e, factor * total * edge.share)


@inlined
def offer_firing(p: Plant, s: SimulationState, operator: Row) -> None:
    """Records of fired windows that tasks send: limited by their time and their network."""
    for t in range(operator.first, operator.end):
        task = s.tasks[t]
        task.could_send = task.firing
        if task.firing * task.fire > p.step_s:
            task.could_send = p.step_s / task.fire
        task.out = min(task.could_send, task.sendable)


@compiled_in_place
def from_sinks(p: Plant, s: SimulationState) -> None:
    """The records that each task can take in this step, and thereby the room at each gate (Eq. 6, 7)."""
    for op in range(len(p.operators) - 1, -1, -1):
        operator = p.operators[op]
        if operator.source_share > 0.0:
            continue
        at_once = operator.emission == AT_ONCE
        if at_once:
            for t in range(operator.first, operator.end):
                task = s.tasks[t]
                task.out = min(operator.selectivity * p.step_s / task.service, task.sendable)
        else:
            offer_firing(p, s, operator)
        factor = limit_output(p, s, operator)
        for t in range(operator.first, operator.end):
            task = s.tasks[t]
            emitted = factor * task.out
            if at_once:
                task.intake = p.step_s / task.service
                if operator.selectivity > 0.0:
                    task.intake = min(task.intake, emitted / operator.selectivity)
            elif emitted < task.firing * (1 - 1e-9):
                task.intake = 0.0
            else:
                left = max(p.step_s - emitted * task.fire, 0.0)
                task.intake = left / (task.service * max(1.0 - operator.fire_share, 1e-9))
        open_gates(p, s, operator)


@inlined
def open_gates(p: Plant, s: SimulationState, operator: Row) -> None:
    """Divide each task's intake among its gates by the records waiting there, and set their room accordingly (Eq. 6)."""
    for t in range(operator.first, operator.end):
        total = 0.0
        for i in range(operator.in_first, operator.in_end):
            e = p.in_edges[i]
            gate = s.gates[p.edges[e].first + t - operator.first]
            gate.draw = gate.queue + gate.arrived + 1e-9
            total += gate.draw
        for i in range(operator.in_first, operator.in_end):
            e = p.in_edges[i]
            g = p.edges[e].first + t - operator.first
            gate = s.gates[g]
            gate.draw /= total
            gate.free = max(p.gates[g].room - gate.queue + gate.draw * s.tasks[t].intake, 0.0)
            gate.arrived = 0.0
