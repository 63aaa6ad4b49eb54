"""Figures of a job's operators from the samples of a run: selectivity, bytes, state accesses, use of workers."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pandas as pd
import pyarrow as pa

from models.capacity.calibration import WorkerWindow
from models.job import Job, Kind

OBSERVED: Final = "observe"
"""Phase in which the job has settled at a rate that it (nearly) sustains."""
_SUMMED: Final = (
    *("records_in", "records_out", "bytes_out", "cpu_s"),
    *("state_read_bytes", "state_written_bytes", "cache_hits", "cache_misses"),
)
_LEAST_CPU_S: Final = 1e-9
"""CPU seconds of a record if its operator was too rarely busy for any CPU time to be counted."""


@dataclass(frozen=True)
class OperatorFigures:
    """Figures per record in, by operator, where they could be measured."""

    selectivity: Mapping[str, float]
    bytes_out: Mapping[str, float]
    """Bytes per record out; every edge gets its own copy."""
    state_read_bytes: Mapping[str, float]
    state_write_bytes: Mapping[str, float]
    cpu_s: Mapping[str, float]
    """As in the samples: on a real cluster a guess, since the CPU time of a worker is divided among its tasks by busy time."""
    cache_hit_rate: Mapping[str, float]


def figures(job: Job, samples: pa.Table) -> OperatorFigures:
    """Figures of the settled phases."""
    sums = _settled(samples).groupby("operator")[list(_SUMMED)].sum()
    totals = {column: {str(name): float(v) for name, v in sums[column].items()} for column in _SUMMED}
    taken = {name: records for name, records in totals["records_in"].items() if records > 0}
    selectivity = _selectivity(job, taken, totals["records_out"])
    sent = {
        name: taken[name]
        * selectivity.get(name, 0.0 if job.operator(name).kind is not Kind.SOURCE else 1.0)
        * sum(e.share for e in job.downstream_edges(name))
        for name in taken
    }
    hits, misses = totals["cache_hits"], totals["cache_misses"]
    return OperatorFigures(
        selectivity=selectivity,
        bytes_out={name: totals["bytes_out"][name] / n for name, n in sent.items() if n > 0},
        state_read_bytes={name: totals["state_read_bytes"][name] / n for name, n in taken.items()},
        state_write_bytes={name: totals["state_written_bytes"][name] / n for name, n in taken.items()},
        cpu_s={name: max(totals["cpu_s"][name] / n, _LEAST_CPU_S) for name, n in taken.items()},
        cache_hit_rate={name: h / (h + misses[name]) for name, h in hits.items() if h + misses[name] > 0},
    )


def _selectivity(job: Job, taken: Mapping[str, float], emitted: Mapping[str, float]) -> dict[str, float]:
    """Records out per record in."""
    found = {}
    for name, records in taken.items():
        passes_all = job.operator(name).kind is Kind.SOURCE and emitted[name] == records
        if job.operator(name).kind is not Kind.SINK and emitted[name] > 0 and not passes_all:
            found[name] = emitted[name] / _times_counted(job, name, taken, emitted) / records
    return found


def _times_counted(job: Job, name: str, taken: Mapping[str, float], emitted: Mapping[str, float]) -> int:
    """How often a record out is counted: Flink counts it once per edge, the simulator once.

    Derived from the input of a downstream operator that reads from this one alone.
    """
    edges = job.downstream_edges(name)
    for edge in edges if len(edges) > 1 else ():
        if len(job.upstream_edges(edge.downstream)) == 1 and taken.get(edge.downstream, 0.0) > 0:
            return max(1, min(len(edges), round(emitted[name] * edge.share / taken[edge.downstream])))
    return 1


def settled_windows(samples: pa.Table, phase: str = OBSERVED) -> list[WorkerWindow]:
    """The use of each worker in each settled window, or in those of another phase."""
    return _windows(samples.filter(pa.compute.field("phase") == phase).to_pandas())


def saturated_windows(samples: pa.Table, workers: Collection[str] | None = None) -> list[WorkerWindow]:
    """The use of workers (all, or these) in the second half of the warm-up, under overload."""
    frame = samples.filter(pa.compute.field("phase") == "warmup").to_pandas()
    late = frame[frame["time_s"] > frame["time_s"].max() / 2]
    return _windows(late if workers is None else late[late["worker"].isin(list(workers))])


def task_shares(samples: pa.Table, operator: str) -> list[float]:
    """Share of its operator's records that each task took, in the settled phases."""
    frame = _settled(samples)
    records = frame[frame["operator"] == operator].groupby("task")["records_in"].sum()
    total = float(records.sum())
    return [float(r) / total for r in records] if total > 0 else []


def _settled(samples: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = samples.filter(pa.compute.field("phase") == OBSERVED).to_pandas()
    return frame


def _windows(frame: pd.DataFrame) -> list[WorkerWindow]:
    """By worker, for each uninterrupted period of one phase."""
    found = []
    for times in _stretches(frame):
        inside = frame[frame["time_s"].isin(times)]
        seconds = float(inside.drop_duplicates("time_s")["interval_s"].sum())
        for worker, own in inside.groupby("worker"):
            accesses = own.groupby("operator")[["cache_hits", "cache_misses", "state_written_bytes"]].transform("sum")
            stateless = own[accesses.sum(axis=1) == 0]
            of_stateless = _window(stateless, seconds, str(worker)) if len(stateless) else None
            found.append(replace(_window(own, seconds, str(worker)), stateless=of_stateless))
    return found


def _window(own: pd.DataFrame, seconds: float, worker: str) -> WorkerWindow:
    """Of the tasks of one worker in one period."""
    reads = own["cache_hits"] + own["cache_misses"]
    state_s = (own["state_latency_s"].astype(float) * reads).where(reads > 0, 0.0)
    threads = (own["busy_s"] - state_s).groupby(own["operator"]).sum() / seconds
    untimed = set(own["operator"][state_s.isna()])
    rates = own.groupby("operator")["records_in"].sum() / seconds
    return WorkerWindow(
        cores=float(own["cpu_s"].sum()) / seconds,
        busy=float(own["busy_s"].sum()) / seconds,
        rates={str(name): float(rate) for name, rate in rates.items()},
        worker=worker,
        tasks=len(own[["operator", "task"]].drop_duplicates()),
        threads={str(name): float(busy) for name, busy in threads.items() if name not in untimed},
    )


def _stretches(frame: pd.DataFrame) -> list[Sequence[float]]:
    """Ends of intervals, grouped into consecutive ones of the same run and phase."""
    stretches: list[list[float]] = []
    last: tuple[str, float] | None = None
    ends = frame[["time_s", "phase", "interval_s"]].drop_duplicates().sort_values("time_s")
    for time_s, phase, interval_s in ends.itertuples(index=False):
        follows = last is not None and last[0] == phase and time_s - last[1] <= 1.5 * interval_s
        if follows:
            stretches[-1].append(time_s)
        else:
            stretches.append([time_s])
        last = (phase, time_s)
    return list(stretches)
