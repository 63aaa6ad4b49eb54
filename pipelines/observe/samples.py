"""What was observed as samples, the rows that drift checks and features read."""

from collections.abc import Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from models.capacity.observed.counters.counts import JobCounts
from models.capacity.observed.counters.intervals import cpu_per_busy_s, cpu_shares, intervals
from pipelines.drift.production import SUFFIX, production_key
from pipelines.store.workspace import Workspace
from testbeds.protocol import SAMPLE_SCHEMA

PHASE = "observe"


def samples_of(
    readings: Sequence[JobCounts], job: str, operators: Mapping[str, str], run: str, began_s: float | None = None
) -> pa.Table:
    """A row for each task and interval, with SAMPLE_SCHEMA.

    CPU of a TaskManager is shared out by busy time, at most its busy time to each task. Accesses to state are 0 where the
    state backend does not count them.

    Args:
        operators: name of each vertex as an operator, by id; others are left out.
        began_s: when the run began, by the clock of the readings; None: with the first of them.
    """
    done, used = intervals(readings), cpu_shares(readings)
    per_busy = cpu_per_busy_s(done, used)
    zero_s = readings[0].time_s if began_s is None else began_s
    rows = [
        {
            "run": run,
            "job": job,
            "operator": operators[one.vertex],
            "task": one.task,
            "worker": one.worker,
            "phase": PHASE,
            "time_s": one.ended_s - zero_s,
            "interval_s": one.seconds,
            "records_in": one.records_in,
            "records_out": one.records_out,
            "bytes_out": one.bytes_out,
            "busy_s": one.busy_s or 0.0,
            "backpressured_s": one.backpressured_s,
            "idle_s": one.idle_s if one.busy_s is not None else 0.0,
            "cpu_s": (one.busy_s or 0.0) * per_busy.get(one.worker, 1.0),
            "state_read_bytes": 0.0 if one.state is None else one.state.read_bytes,
            "state_written_bytes": 0.0 if one.state is None else one.state.written_bytes,
            "cache_hits": 0.0 if one.state is None else one.state.cache_hits,
            "cache_misses": 0.0 if one.state is None else one.state.cache_misses,
            "state_latency_s": None,
            "lag_records": one.pending,
        }
        for one in done
        if one.vertex in operators
    ]
    return pa.Table.from_pylist(rows, schema=SAMPLE_SCHEMA)


def keep_samples(workspace: Workspace, samples: pa.Table, job: str, began: datetime) -> str:
    """Store them where `sluice drift` reads them, named by when their run began; returns their key."""
    key = f"{production_key(job)}/observed-{began:%Y%m%dT%H%M%SZ}{SUFFIX}"
    workspace.write_table(key, samples)
    return key
