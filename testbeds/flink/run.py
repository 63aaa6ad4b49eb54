"""A job that runs on Flink: rates are offered to its sources, and its counters become samples."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa

from models.errors import SluiceError
from models.job import Job, Kind
from models.metrics import SAMPLE_INTERVAL_S
from testbeds.flink.answers import ENDED, Vertex
from testbeds.flink.control import SourceControl
from testbeds.flink.counters import Counter
from testbeds.flink.meter import TIMES, Increments, Meter
from testbeds.flink.rest import FlinkRest, wait_for
from testbeds.protocol import SAMPLE_SCHEMA, Window, sample_intervals

_READ_EVERY_S: Final = 0.3
_LATE_S: Final = 20.0
"""How long after its end a window may still miss readings."""


@dataclass(frozen=True)
class Deployed:
    """A job whose tasks all run."""

    run: str
    job: Job
    id: str
    vertices: Mapping[str, Vertex]
    """By operator."""
    workers: Mapping[tuple[str, int], str]
    """TaskManager of each task, by operator and number."""


@dataclass
class _SourceTask:
    """What a source task has emitted since it follows the order in force."""

    since: float
    """When the order came to it, `time.monotonic`; the earliest that its reports allow."""
    emitted: Counter


class FlinkRun:
    """Implements `testbeds.protocol.Run`. The clock is the machine's: `inject` takes its seconds, and up to two more.

    CPU seconds are those that the operators state and are held to. State latency is not reported.
    """

    def __init__(
        self,
        deployed: Deployed,
        rest: FlinkRest,
        control: SourceControl,
        check: Callable[[], None],
        on_close: Callable[[], None],
    ) -> None:
        """
        Args:
            check: raises if the cluster is broken.
            on_close: called once, when the run is closed.
        """
        self._deployed, self._rest, self._control = deployed, rest, control
        self._check, self._on_close = check, on_close
        stateful = [
            deployed.vertices[o.name].id
            for o in deployed.job.operators
            if o.keys is not None and o.cost.state_read_bytes + o.cost.state_write_bytes > 0
        ]
        self._meter = Meter(rest, deployed.id, deployed.vertices.values(), stateful)
        self._sources: dict[tuple[str, int], _SourceTask] = {}
        self._rate: float | None = None
        self._order = ""
        self._elapsed_s = 0.0
        self._closed = False

    @property
    def elapsed_s(self) -> float:
        """Time injected so far, seconds."""
        return self._elapsed_s

    def inject(self, rate: float, seconds: float, phase: str) -> Window:
        """See `testbeds.protocol.Run.inject`.

        Raises:
            SluiceError: the run was closed, the job failed, a process of the cluster ended, or Flink reported nothing for
                too long: there is then no window, rather than a wrong one.
        """
        if self._closed:
            raise SluiceError("a closed run cannot be injected into; deploy the job again")
        intervals = sample_intervals(rate, seconds)
        self._offer(rate)
        begin = time.monotonic()
        boundaries = [begin + SAMPLE_INTERVAL_S * i for i in range(intervals + 1)]
        self._read_until_covered(begin, boundaries[-1])
        emitted = sum(float(np.sum(t.emitted.increments(boundaries))) for t in self._sources.values())
        lags = {task: self._lags(task, boundaries[1:]) for task in self._sources}
        samples = self._samples(self._meter.increments(boundaries), lags, phase)
        for task in self._sources.values():
            task.emitted.forget_before(boundaries[-1])
        self._elapsed_s += seconds
        pending = float(sum(lag[-1] for lag in lags.values()))
        return Window(rate, min(rate, emitted / seconds), seconds, pending, samples)

    def close(self) -> None:
        """Cancel the job; may be called twice."""
        if not self._closed:
            self._closed = True
            try:
                with suppress(SluiceError):  # a cluster that does not answer runs no job any more
                    self._rest.cancel(self._deployed.id)
            finally:
                self._control.close()
                self._on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _offer(self, rate: float) -> None:
        """Set the rate, and wait until every source task follows it."""
        if rate != self._rate:
            self._sources.clear()
            self._order = self._control.offer({o.name: rate * o.rate_share for o in self._deployed.job.sources})
            self._rate = rate
        tasks = sum(self._deployed.vertices[o.name].parallelism for o in self._deployed.job.sources)

        def all_follow() -> bool | None:
            self._read()
            return (len(self._sources) == tasks and self._meter.has_read_all) or None

        wait_for(all_follow, _LATE_S, f"the {tasks} source tasks at {rate:g} records/s", pause_s=_READ_EVERY_S)

    def _read_until_covered(self, begin: float, end: float) -> None:
        while True:
            self._read()
            covered = self._meter.covers(begin, end) and all(
                t.emitted.covers(begin, end) for t in self._sources.values()
            )
            if covered:
                return
            if time.monotonic() > end + _LATE_S:
                raise SluiceError(
                    f"Flink and its sources did not report on job {self._deployed.id} within {_LATE_S:g} s of the end of a "
                    f"window; measure again, on a machine that is less busy"
                )
            time.sleep(_READ_EVERY_S)

    def _read(self) -> None:
        """Read everything once, and make sure that the job still runs."""
        self._check()
        state = self._rest.job(self._deployed.id).state
        if state in ENDED or state in ("FAILING", "RESTARTING"):
            reason = self._rest.failure(self._deployed.id) or "no reason was given"
            raise SluiceError(f"job {self._deployed.id} is {state.lower()} while it was measured: {reason}")
        self._meter.read()
        for source in self._deployed.job.sources:
            for number, report in self._control.reports(source.name).items():
                if report.order != self._order:
                    continue
                task = self._sources.setdefault(
                    (source.name, number), _SourceTask(report.heard_at - report.seconds, Counter())
                )
                task.since = min(task.since, report.heard_at - report.seconds)
                when = task.since + report.seconds
                if not task.emitted.times or when > task.emitted.times[-1]:
                    task.emitted.read(when, report.emitted, refreshed=True)

    def _lags(self, task: tuple[str, int], times: Sequence[float]) -> np.ndarray:
        """Records owed at each time, float64[times]."""
        source = self._sources[task]
        share = self._deployed.job.operator(task[0]).rate_share / self._deployed.vertices[task[0]].parallelism
        due = (self._rate or 0.0) * share * (np.asarray(times) - source.since)
        return np.maximum(due - np.interp(times, source.emitted.times, source.emitted.values), 0.0)

    def _samples(
        self, increments: Mapping[tuple[str, int], Increments], lags: Mapping[tuple[str, int], np.ndarray], phase: str
    ) -> pa.Table:
        deployed = self._deployed
        rows: list[dict[str, Any]] = []
        for name in deployed.job.order:
            vertex = deployed.vertices[name]
            for task in range(vertex.parallelism):
                grown = _to_the_second(increments[vertex.id, task])
                lag = lags.get((name, task))
                for interval in range(len(grown["numRecordsIn"])):
                    row = self._measures(name, grown, interval)
                    row |= {"run": deployed.run, "job": deployed.job.name, "operator": name, "task": task}
                    row |= {"worker": deployed.workers[name, task], "phase": phase, "interval_s": SAMPLE_INTERVAL_S}
                    row["time_s"] = self._elapsed_s + SAMPLE_INTERVAL_S * (interval + 1)
                    row["lag_records"] = None if lag is None else float(lag[interval])
                    rows.append(row)
        return pa.Table.from_pylist(rows, schema=SAMPLE_SCHEMA)

    def _measures(self, name: str, grown: Increments, interval: int) -> dict[str, Any]:
        operator = self._deployed.job.operator(name)
        records_out = float(grown["numRecordsOut"][interval])
        records_in = records_out if operator.kind is Kind.SOURCE else float(grown["numRecordsIn"][interval])
        return {
            "records_in": records_in,
            "records_out": records_out,
            "bytes_out": float(grown["numBytesOut"][interval]),
            "busy_s": float(grown["accumulateBusyTimeMs"][interval]) / 1000,
            "backpressured_s": float(grown["accumulateBackPressuredTimeMs"][interval]) / 1000,
            "idle_s": float(grown["accumulateIdleTimeMs"][interval]) / 1000,
            "cpu_s": records_in * operator.cost.cpu_s,
            "state_read_bytes": float(grown["rocksdb_bytes_read"][interval]),
            "state_written_bytes": float(grown["rocksdb_bytes_written"][interval]),
            "cache_hits": float(grown["rocksdb_block_cache_hit"][interval]),
            "cache_misses": float(grown["rocksdb_block_cache_miss"][interval]),
            "state_latency_s": None,
        }


def _to_the_second(grown: Increments) -> Increments:
    """Increments over exactly an interval.

    A reading is dated to when it was heard, which is up to a second late; how late it was, the times tell that the task
    counted itself, since it is always busy, backpressured or idle.
    """
    counted = np.sum([grown[name] for name in TIMES], axis=0) / 1000
    scale = np.divide(SAMPLE_INTERVAL_S, counted, out=np.ones_like(counted), where=counted > 0)
    return Increments({name: np.maximum(values, 0.0) * scale for name, values in grown.values.items()})
