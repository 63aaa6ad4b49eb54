"""Samples of a running job's tasks, one for each reporting interval."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from flink_client.metrics.readings import BUSY_TIME, TIMES
from models.job import Job
from models.metrics import SAMPLE_INTERVAL_S
from testbeds.flink.measuring.cpu_time import shared_out
from testbeds.flink.measuring.meter import Increments
from testbeds.flink.submission import Deployed
from testbeds.protocol import SAMPLE_SCHEMA

Task = tuple[str, int]
"""Operator and number."""
_LEAST_BUSY_S: Final = 0.001
"""Flink counts whole milliseconds; a task with records was busy for some time, however short."""


@dataclass(frozen=True)
class TaskIntervals:
    """Readings of a period, by task; each array float64[intervals]."""

    counters: Mapping[Task, Increments]
    emitted: Mapping[Task, np.ndarray]
    """Records that the source tasks took in, by their own count: Flink counts a record out once per outgoing edge."""
    lags: Mapping[Task, np.ndarray]
    """Records pending at a source task at the end of each interval."""
    cpu_s: Mapping[str, np.ndarray] | None
    """CPU seconds of each TaskManager; None for operators with stated costs."""


def samples(job: Job, deployed: Deployed, measured: TaskIntervals, run: str, began_s: float, phase: str) -> pa.Table:
    """The samples of a window that began `began_s` after the deployment, with SAMPLE_SCHEMA."""
    grown = {task: to_the_second(increments) for task, increments in measured.counters.items()}
    cpu_s = cpu_of_tasks(job, deployed, grown, measured.emitted, measured.cpu_s)
    rows: list[dict[str, Any]] = []
    for (name, number), counters in grown.items():
        emitted, lag = measured.emitted.get((name, number)), measured.lags.get((name, number))
        for i in range(len(counters[BUSY_TIME])):
            row = _measures(counters, i)
            if emitted is not None:
                passed_on = float(emitted[i]) * deployed.passed_on.get(name, 1.0)
                row |= {"records_in": float(emitted[i]), "records_out": passed_on}
            if row["records_in"] > 0 and row["busy_s"] < _LEAST_BUSY_S:
                row |= {"busy_s": _LEAST_BUSY_S, "idle_s": max(0.0, row["idle_s"] - _LEAST_BUSY_S)}
            row |= {"run": run, "job": job.name, "operator": name, "task": number, "phase": phase}
            row |= {"worker": deployed.workers[name, number], "interval_s": SAMPLE_INTERVAL_S}
            row["time_s"] = began_s + SAMPLE_INTERVAL_S * (i + 1)
            row["cpu_s"] = float(cpu_s[name, number][i])
            row["lag_records"] = None if lag is None else float(lag[i])
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=SAMPLE_SCHEMA)


def cpu_of_tasks(
    job: Job,
    deployed: Deployed,
    grown: Mapping[Task, Increments],
    emitted: Mapping[Task, np.ndarray],
    cpu_s: Mapping[str, np.ndarray] | None,
) -> dict[Task, np.ndarray]:
    """CPU seconds of each task: its share of its TaskManager's or, if those are None, the stated cost of its operator."""
    if cpu_s is not None:
        busy = {task: counters[BUSY_TIME] / 1000 for task, counters in grown.items()}
        return shared_out(cpu_s, busy, deployed.workers)
    return {
        task: emitted.get(task, counters["numRecordsIn"]) * job.operator(task[0]).cost.cpu_s
        for task, counters in grown.items()
    }


def _measures(grown: Increments, interval: int) -> dict[str, Any]:
    return {
        "records_in": float(grown["numRecordsIn"][interval]),
        "records_out": float(grown["numRecordsOut"][interval]),
        "bytes_out": float(grown["numBytesOut"][interval]),
        "busy_s": float(grown["accumulateBusyTimeMs"][interval]) / 1000,
        "backpressured_s": float(grown["accumulateBackPressuredTimeMs"][interval]) / 1000,
        "idle_s": float(grown["accumulateIdleTimeMs"][interval]) / 1000,
        "state_read_bytes": float(grown["rocksdb_bytes_read"][interval]),
        "state_written_bytes": float(grown["rocksdb_bytes_written"][interval]),
        "cache_hits": float(grown["rocksdb_block_cache_hit"][interval]),
        "cache_misses": float(grown["rocksdb_block_cache_miss"][interval]),
        "state_latency_s": None if grown.state_latency_s is None else float(grown.state_latency_s[interval]),
    }


def to_the_second(grown: Increments) -> Increments:
    """Increments scaled to exactly one interval.

    A reading has the time of its arrival, up to a second late. The times counted by the task itself correct that, since it
    is always busy, backpressured or idle.
    """
    forward = {name: np.maximum(values, 0.0) for name, values in grown.values.items()}
    counted = np.sum([forward[name] for name in TIMES], axis=0) / 1000
    scale = np.divide(SAMPLE_INTERVAL_S, counted, out=np.ones_like(counted), where=counted > 0)
    return Increments({name: values * scale for name, values in forward.items()}, grown.state_latency_s)
