"""From a replay to the metrics of section 5.1 of the evaluation of autoscalers.

| metric | definition |
|---|---|
| latency | time in the input queue, percentiles over records (`pipelines.arena.replays.latency`) |
| throughput | records read per second, and per record that arrived |
| within 1, 10, 60 s | share of records that waited at most that long |
| task-hours | tasks of all operators, sources included, over time; a new deployment counts from the decision on |
| memory-hours | heap 134 MiB, network 39 MiB and managed memory of each task (Justin section 5), over time |
| rescales | scaling actions; each takes the job down for its downtime |
| convergence | after a lasting change of the rate: time until the job runs with its final tasks, and rescales until then |

All but convergence count from the end of the burn-in; latencies are those of records that arrived from then on. Tasks are
final if there is no rescale in the last 10 minutes before the next lasting change, or the end.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa

from models.metrics import SAMPLE_INTERVAL_S
from pipelines.arena.replays import latency
from pipelines.arena.replays.cell import HOUR_S, TRACE_SCHEMA, Convergence, ReplayOutcome, RescaleRecord
from pipelines.arena.replays.replay import Trace
from pipelines.arena.replays.workloads import Workload

MIB_PER_GIB: Final = 1024.0
LIMITS_S: Final = (1, 10, 60)
"""Waiting times of which the share of records within is reported, seconds."""
SETTLED_S: Final = 600.0
"""A policy has converged to tasks that stay for this long, until the rate changes again."""


def outcome(trace: Trace, workload: Workload, burn_in_s: float = 0.0) -> ReplayOutcome:
    """The metrics of a replay of `workload`, of which the first `burn_in_s` seconds do not count."""
    arrived = trace.rate * SAMPLE_INTERVAL_S
    first = round(burn_in_s / SAMPLE_INTERVAL_S)
    waited = latency.waiting(arrived, trace.read, SAMPLE_INTERVAL_S, first)
    p50, p95 = (None, None) if waited is None else waited.quantiles((0.5, 0.95))
    seconds = (len(arrived) - first) * SAMPLE_INTERVAL_S
    came, read = float(np.sum(arrived[first:])), float(np.sum(trace.read[first:]))
    tasks, memory_mb = tasks_over_time(trace)[first:], memory_over_time(trace)[first:]
    decided = [r for r in trace.rescales if r.time_s >= burn_in_s]
    done = [r for r in decided if not r.refused]
    return ReplayOutcome(
        latency_p50_s=p50,
        latency_p95_s=p95,
        **{f"within_{s}_s": None if waited is None else waited.share_within(s) for s in LIMITS_S},
        input_rate=came / seconds,
        throughput=read / seconds,
        throughput_ratio=read / came if came > 0 else None,
        most_lag=float(np.max(trace.lag[first:])),
        last_lag=float(trace.lag[-1]),
        task_hours=float(np.sum(tasks)) * SAMPLE_INTERVAL_S / HOUR_S,
        memory_gib_hours=float(np.sum(memory_mb)) * SAMPLE_INTERVAL_S / HOUR_S / MIB_PER_GIB,
        most_tasks=int(np.max(tasks)),
        rescales=len(done),
        refusals=len(decided) - len(done),
        held_back=sum(time_s >= burn_in_s for time_s in trace.held_back),
        downtime_s=max(seconds - float(np.sum(trace.running_s[first:])), 0.0),
        convergences=convergences([r for r in trace.rescales if not r.refused], workload),
    )


def convergences(done: Sequence[RescaleRecord], workload: Workload) -> tuple[Convergence, ...]:
    """How the policy came to rest after each of the workload's lasting changes."""
    found = []
    for change_s, next_s in pairwise((*workload.changes_s, workload.seconds)):
        own = [r for r in done if change_s <= r.time_s < next_s]
        rested_s = own[-1].time_s + own[-1].downtime_s if own else change_s
        stayed = next_s - rested_s >= SETTLED_S
        found.append(
            Convergence(
                change_s=change_s,
                rate=workload.rates[int(change_s // workload.step_s)],
                seconds=rested_s - change_s if stayed else None,
                steps=len(own),
            )
        )
    return tuple(found)


def tasks_over_time(trace: Trace) -> np.ndarray:
    """Tasks of all operators in each interval, int64[intervals]."""
    return _over_time(trace, [sum(parallelism.values()) for _, parallelism, _ in trace.deployed]).astype(np.int64)


def memory_over_time(trace: Trace) -> np.ndarray:
    """Memory of all tasks in each interval, MiB, float64[intervals]."""
    return _over_time(trace, [memory_mb for _, _, memory_mb in trace.deployed])


def _over_time(trace: Trace, values: Sequence[float]) -> np.ndarray:
    return np.repeat(np.asarray(values, dtype=np.float64), _lengths(trace))


def _lengths(trace: Trace) -> np.ndarray:
    """Intervals that each deployment lasted, int64[deployments]."""
    return np.diff([*(first for first, _, _ in trace.deployed), len(trace.rate)])


def table(trace: Trace) -> pa.Table:
    """The trace as a table with `pipelines.arena.replays.cell.TRACE_SCHEMA`."""
    arrived = trace.rate * SAMPLE_INTERVAL_S
    tasks: list[Mapping[str, int]] = []
    for (_, parallelism, _), length in zip(trace.deployed, _lengths(trace), strict=True):
        tasks += [parallelism] * int(length)
    columns = {
        "time_s": SAMPLE_INTERVAL_S * np.arange(1, len(arrived) + 1),
        "running_s": trace.running_s,
        "rate": trace.rate,
        "read_rate": trace.read / SAMPLE_INTERVAL_S,
        "lag_records": trace.lag,
        "latency_s": latency.waiting_s(arrived, trace.read, SAMPLE_INTERVAL_S),
        "tasks": tasks_over_time(trace),
        "memory_mb": memory_over_time(trace),
        "capacity": pa.array(trace.capacity, mask=np.isnan(trace.capacity)),
        "parallelism": [list(parallelism.items()) for parallelism in tasks],
    }
    return pa.table([pa.array(columns[f.name], type=f.type) for f in TRACE_SCHEMA], schema=TRACE_SCHEMA)
