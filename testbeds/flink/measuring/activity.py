"""Activity of a job's operators in a period, as scaling policies read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from flink_client.metrics.readings import TIMES
from flink_client.rest.client import FlinkRest
from models.job import Job
from models.metrics import Activity
from testbeds.flink.measuring.meter import Increments
from testbeds.flink.measuring.samples import Task, cpu_of_tasks
from testbeds.flink.submission import Deployed

_IN: Final = "buffers.inPoolUsage"
_OUT: Final = "buffers.outPoolUsage"


@dataclass(frozen=True)
class Stretch:
    """Readings of a period, by task; counts are float64[1]."""

    seconds: float
    counters: Mapping[Task, Increments]
    emitted: Mapping[Task, np.ndarray]
    owed: Mapping[Task, float]
    """Records pending at a source task at the end."""
    cpu_s: Mapping[str, np.ndarray] | None
    """CPU seconds of each TaskManager; None for operators with stated costs."""
    queue_shares: Mapping[str, np.ndarray]
    state_bytes: Mapping[str, np.ndarray]
    """By operator with state, float64[tasks]; empty if the cluster takes no savepoints."""


def activity(job: Job, deployed: Deployed, stretch: Stretch) -> dict[str, Activity]:
    """The activity of each operator while the job ran."""
    cpu_s = cpu_of_tasks(job, deployed, stretch.counters, stretch.emitted, stretch.cpu_s)
    return {o.name: _of_operator(o.name, job, deployed, stretch, cpu_s) for o in job.operators}


def _of_operator(
    name: str, job: Job, deployed: Deployed, stretch: Stretch, cpu_s: Mapping[Task, np.ndarray]
) -> Activity:
    tasks = [(name, task) for task in range(deployed.vertices[name].parallelism)]
    grown = {counter: np.array([stretch.counters[t][counter][0] for t in tasks]) for counter in _counters(stretch)}
    times = np.maximum(np.stack([grown[counter] for counter in TIMES]), 0.0)
    counted = times.sum(axis=0)
    # A task is always busy, backpressured or idle, so the sum of these times is the period that its readings span.
    to_the_second = np.divide(stretch.seconds * 1000, counted, out=np.ones_like(counted), where=counted > 0)
    busy, backpressured, _ = times * to_the_second / 1000
    source = name in deployed.sources
    emitted = np.array([stretch.emitted[t][0] for t in tasks]) if source else None
    none = np.zeros(len(tasks))
    accesses = grown["rocksdb_block_cache_hit"] + grown["rocksdb_block_cache_miss"]
    return Activity(
        seconds=stretch.seconds,
        records_in=grown["numRecordsIn"] * to_the_second if emitted is None else emitted,
        records_out=(
            grown["numRecordsOut"] * to_the_second if emitted is None else emitted * deployed.passed_on.get(name, 1.0)
        ),
        busy_s=busy,
        backpressured_s=backpressured,
        idle_s=np.maximum(stretch.seconds - busy - backpressured, 0.0),
        cpu_s=np.array([cpu_s[t][0] for t in tasks]),
        cache_hits=grown["rocksdb_block_cache_hit"],
        cache_misses=grown["rocksdb_block_cache_miss"],
        state_time_s=accesses * np.array([_latency_s(stretch.counters[t]) for t in tasks]),
        input_queue_share=none if source else stretch.queue_shares[name],
        lag_records=np.array([stretch.owed[t] for t in tasks]) if source else none,
        state_bytes=stretch.state_bytes.get(name, none),
        keeps_state=name in stretch.state_bytes,
    )


def _latency_s(counters: Increments) -> float:
    """Latency of a state access at the end; 0 before the first was timed."""
    return 0.0 if counters.state_latency_s is None else float(counters.state_latency_s[-1])


def _counters(stretch: Stretch) -> list[str]:
    return list(next(iter(stretch.counters.values())).values)


def queue_shares(rest: FlinkRest, job: Job, deployed: Deployed) -> dict[str, np.ndarray]:
    """Share of full buffers before each task, by operator, float64[tasks]; without sources.

    Tasks of one TaskManager exchange records without input buffers: there the output buffers of the upstream tasks count.
    """
    usage = {
        name: rest.vertex_metrics(deployed.id, vertex.id, (_IN, _OUT), vertex.parallelism)
        for name, vertex in deployed.vertices.items()
    }
    shares = {}
    for operator in job.scaled_operators:
        before = [task.get(_OUT, 0.0) for e in job.upstream_edges(operator.name) for task in usage[e.upstream]]
        own = np.array([task.get(_IN, 0.0) for task in usage[operator.name]])
        shares[operator.name] = np.clip(np.maximum(own, np.mean(before)), 0.0, 1.0)
    return shares
