"""From the kernel's measures to samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from models.metrics import SAMPLE_INTERVAL_S
from testbeds.protocol import SAMPLE_SCHEMA
from testbeds.simulator.kernel import arrays


@dataclass(frozen=True)
class TaskColumns:
    """The constant columns of samples; one entry per task, in the kernel's order."""

    run: str
    job: str
    operators: Sequence[str]
    tasks: np.ndarray
    """Index of each task within its operator, int64[tasks]."""
    workers: Sequence[str]
    is_source: np.ndarray
    """bool[tasks]"""
    keeps_state: np.ndarray
    """bool[tasks]"""


def samples(columns: TaskColumns, measured: np.ndarray, start_s: float, phase: str) -> pa.Table:
    """One row per task and reporting interval.

    Args:
        measured: float64[intervals, tasks, MEASURES], from the kernel.
        start_s: time at which the first interval began, seconds since the run began.
    """
    intervals, tasks, _ = measured.shape
    flat = measured.reshape(intervals * tasks, -1)
    busy = np.minimum(flat[:, arrays.BUSY], SAMPLE_INTERVAL_S)
    waiting = np.minimum(flat[:, arrays.BACKPRESSURED], SAMPLE_INTERVAL_S - busy)
    reads = flat[:, arrays.HITS] + flat[:, arrays.MISSES]
    known = reads > 0
    latency = np.divide(flat[:, arrays.STATE_TIME], reads, out=np.zeros_like(reads), where=known)
    ends = start_s + SAMPLE_INTERVAL_S * np.arange(1, intervals + 1)
    table: Mapping[str, object] = {
        "run": _repeated(columns.run, len(flat)),
        "job": _repeated(columns.job, len(flat)),
        "operator": _tiled(columns.operators, intervals),
        "task": np.tile(columns.tasks, intervals),
        "worker": _tiled(columns.workers, intervals),
        "phase": _repeated(phase, len(flat)),
        "time_s": np.repeat(ends, tasks),
        "interval_s": np.full(len(flat), SAMPLE_INTERVAL_S),
        "records_in": flat[:, arrays.RECORDS_IN],
        "records_out": flat[:, arrays.RECORDS_OUT],
        "bytes_out": flat[:, arrays.BYTES_OUT],
        "busy_s": busy,
        "backpressured_s": waiting,
        "idle_s": np.maximum(SAMPLE_INTERVAL_S - busy - waiting, 0.0),
        "cpu_s": flat[:, arrays.CPU],
        "state_read_bytes": flat[:, arrays.READ],
        "state_written_bytes": flat[:, arrays.WRITTEN],
        "cache_hits": flat[:, arrays.HITS],
        "cache_misses": flat[:, arrays.MISSES],
        "state_latency_s": pa.array(latency, mask=~(np.tile(columns.keeps_state, intervals) & known)),
        "lag_records": pa.array(np.maximum(flat[:, arrays.LAG], 0.0), mask=~np.tile(columns.is_source, intervals)),
    }
    return pa.table(
        [_as(table[f.name], f.type) for f in SAMPLE_SCHEMA],
        schema=SAMPLE_SCHEMA,
    )


def _as(values: object, kind: pa.DataType) -> pa.Array:
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, type=kind)


def _repeated(value: str, length: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, dtype=np.int32)), pa.array([value])).cast(
        pa.string()
    )


def _tiled(values: Sequence[str], times: int) -> pa.Array:
    names = sorted(set(values))
    codes = np.array([names.index(v) for v in values], dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(np.tile(codes, times)), pa.array(names)).cast(pa.string())
