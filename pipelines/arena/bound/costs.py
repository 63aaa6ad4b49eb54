"""The most that operators of the simulated cluster can do, whatever the policy: the constants of the lower bound.

| symbol | meaning | unit |
|---|---|---|
| r | records into an operator per record of the sources | |
| c | least seconds of a task per record in: no contention, state in the cache, warm code, the seed's machines | s |
| m(p) | least share of the operator's records that the fullest of its p tasks gets | |
| C(p) | 1 / (r c m(p)), the most that p tasks process | records of the sources/s |
| S | most records that are read and wait in buffers before the operator | records of the sources |

Hot keys, as far as they can be counted on, are in `hot_keys`; C leaves them out.

Premises: tasks that keep state keep managed memory, too, and so write buffers of at most `Flink.write_buffer_mb`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.dataflow import Edge
from models.job import Job, Operator, records_in_per_source_record
from pipelines.arena.bound.hot_keys import SPREADS_AT_ONCE, HotKeys, hot_keys
from testbeds.simulator.layout.buffers import BYTES_PER_MB, pool
from testbeds.simulator.settings import Physics

TASK_NOISE: Final = 0.005
"""Share by which the time of single tasks can be shorter than its mean, over a whole replay. It deviates by 2 % with a time
constant of 15 s, so the mean of one task over 100 minutes deviates by 0.14 %, and that of several by less."""


@dataclass(frozen=True)
class OperatorLimits:
    """What an operator can do at best."""

    name: str
    work_s: float
    """r c: task-seconds per record of the sources, with even shares."""
    capacity: np.ndarray
    """C(p) for p = 1, 2, ...; records of the sources/s, not decreasing."""
    waiting_s: float
    """Time of a record in windows before its work is done, seconds: those upstream, and its own share that fires later."""
    forgiven_s: float
    """Time whose firing work is forgiven by a rescale in place, seconds."""
    records_in: float
    """r."""
    hot: HotKeys | None
    """Its hot keys, if they can be counted on."""

    def with_hot_keys(self, tasks: int, tasks_upstream: int, physics: Physics) -> tuple[float, float, float]:
        """C(tasks) beside hot keys, records of the sources/s; records that a deployment can do beyond it; and those by which
        all deployments together can exceed it."""
        capacity = float(self.capacity[tasks - 1])
        found = None if self.hot is None else self.hot.waiting(tasks, tasks_upstream, physics)
        if self.hot is None or found is None or capacity * self.work_s * found.share <= 1.0:
            return capacity, 0.0, 0.0
        records = self.hot.records / self.records_in / found.share
        return 1.0 / (self.work_s * found.share), records * found.saved, records * found.deviation * SPREADS_AT_ONCE


def operator_limits(
    job: Job, slots: int, machine: float, fullest: Mapping[str, np.ndarray], physics: Physics
) -> tuple[OperatorLimits, ...]:
    """The limits of all operators in topological order.

    Args:
        slots: most tasks.
        machine: factor on the CPU time of a record on the seed's machines.
        fullest: m(p) by operator, for p = 1 ... slots; even shares where absent.
    """
    ratio, even = records_in_per_source_record(job), 1.0 / np.arange(1, slots + 1)
    found = []
    for name in job.order:
        operator = job.operator(name)
        thread_s = operator.cost.cpu_s * machine + operator.cost.external_wait_s + _flush_s(operator, physics)
        work_s = ratio[name] * thread_s / (1 + TASK_NOISE)
        share = np.minimum.accumulate(fullest.get(name, even))
        own_s, forgiven_s = _firing_s(operator)
        found.append(
            OperatorLimits(
                name=name,
                work_s=work_s,
                capacity=1.0 / (work_s * share) if work_s > 0 else np.full(slots, np.inf),
                waiting_s=own_s + _window_s_upstream(job, name),
                forgiven_s=forgiven_s,
                records_in=ratio[name],
                hot=hot_keys(job, name, physics) if work_s > 0 else None,
            )
        )
    return tuple(found)


def buffered(job: Job, parallelism: Mapping[str, int], physics: Physics) -> dict[str, float]:
    """S of each operator: all buffers upstream are full, in records of the sources."""
    ratio = records_in_per_source_record(job)
    # Records on the way to each operator, in its own input records, operator by operator downstream.
    waiting: dict[str, float] = {}
    for name in job.order:
        total = 0.0
        for edge in job.upstream_edges(name):
            upstream = job.operator(edge.upstream)
            total += _room(job, edge, parallelism, physics)
            total += waiting[edge.upstream] * upstream.selectivity * edge.share
        waiting[name] = total
    return {name: waiting[name] / ratio[name] if ratio[name] > 0 else 0.0 for name in job.order}


def _flush_s(operator: Operator, physics: Physics) -> float:
    """Least wait for flushes per record, with the largest write buffer; only where memory is needed to read state."""
    if operator.cost.state_read_bytes == 0:
        return 0.0
    return operator.cost.state_write_bytes * physics.state.flush_s / (physics.flink.write_buffer_mb * BYTES_PER_MB)


def _firing_s(operator: Operator) -> tuple[float, float]:
    """Time by which work waits for windows to fire, and that of panes that can wait to be emitted at a stop (two)."""
    window = operator.window
    if window is None or window.fire_share == 0 or operator.selectivity == 0:
        return 0.0, 0.0
    pane_s = window.firing_interval_s or window.length_s / 10
    return window.fire_share * (window.length_s + pane_s), window.fire_share * min(2 * pane_s, window.length_s)


def _window_s_upstream(job: Job, name: str) -> float:
    """Longest time that records spend in windows on a path to the operator."""
    longest = 0.0
    for edge in job.upstream_edges(name):
        window = job.operator(edge.upstream).window
        own_s = 0.0 if window is None else window.length_s + (window.firing_interval_s or window.length_s)
        longest = max(longest, own_s + _window_s_upstream(job, edge.upstream))
    return longest


def _room(job: Job, edge: Edge, parallelism: Mapping[str, int], physics: Physics) -> float:
    """Most records in the buffers of an edge: of one between all tasks, with all the memory they want."""
    up, down, flink = parallelism[edge.upstream], parallelism[edge.downstream], physics.flink
    size = max(job.operator(edge.upstream).cost.bytes_out, physics.least_record_bytes)
    return (pool(down, flink) * up + pool(up, flink) * down) * flink.buffer_bytes / size
