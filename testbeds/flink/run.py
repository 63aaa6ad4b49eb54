"""A job that runs on Flink: rates are offered to its sources, and its counters become samples."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import numpy as np

from models.errors import SluiceError
from models.metrics import SAMPLE_INTERVAL_S
from testbeds.flink.answers import ENDED
from testbeds.flink.counters import Counter
from testbeds.flink.cpu_time import CpuMeter
from testbeds.flink.meter import Meter
from testbeds.flink.rest import wait_for
from testbeds.flink.samples import Measured, samples
from testbeds.flink.submission import Deployed, Submission
from testbeds.protocol import Window, sample_intervals

_READ_EVERY_S: Final = 0.3
_LATE_S: Final = 20.0
"""How long after its end a window may still miss readings."""


@dataclass
class _SourceTask:
    """What a source task has emitted since it follows the order in force."""

    since: float
    """When the order came to it, `time.monotonic`; the earliest that its reports allow."""
    emitted: Counter


class FlinkRun:
    """Implements `testbeds.protocol.Run`. The clock is the machine's: `inject` takes its seconds, and up to two more.

    CPU seconds are those that the operators state and are held to. For SQL a TaskManager's are given to its tasks by the
    time they were busy, which is the most that a task can have used. State latency is not reported.
    """

    def __init__(
        self,
        submission: Submission,
        deployed: Deployed,
        name: str,
        on_close: Callable[[], None],
    ) -> None:
        """
        Args:
            name: stands in the samples' column `run`.
            on_close: called once, when the run is closed.
        """
        self._submission, self._deployed, self._name, self._on_close = submission, deployed, name, on_close
        self._job, self._control, self._rest = submission.job, submission.control, submission.local.rest
        self._meter = self._new_meter()
        self._cpu = None if submission.script is None else CpuMeter(self._rest, sorted(set(deployed.workers.values())))
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
        measured = self._measured(boundaries)
        table = samples(self._job, self._deployed, measured, self._name, self._elapsed_s, phase)
        self._elapsed_s += seconds
        achieved = sum(float(np.sum(emitted)) for emitted in measured.emitted.values()) / seconds
        pending = float(sum(lag[-1] for lag in measured.lags.values()))
        return Window(rate, achieved, seconds, pending, table)

    def close(self) -> None:
        """Cancel the job; may be called twice."""
        if not self._closed:
            self._closed = True
            try:
                with suppress(SluiceError):  # a broken cluster is started anew before it runs another job
                    self._submission.local.check()
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

    def _new_meter(self) -> Meter:
        vertices, job = self._deployed.vertices, self._job
        keyed = [o for o in job.operators if o.keys is not None]
        if self._submission.script is None:
            keyed = [o for o in keyed if o.cost.state_read_bytes + o.cost.state_write_bytes > 0]
        return Meter(self._rest, self._deployed.id, vertices.values(), [vertices[o.name].id for o in keyed])

    def _offer(self, rate: float) -> None:
        """Set the rate, and wait until every source task follows it."""
        if rate != self._rate:
            self._sources.clear()
            self._order = self._control.offer(
                {self._deployed.sources[o.name]: rate * o.rate_share for o in self._job.sources}
            )
            self._rate = rate
        tasks = sum(self._deployed.vertices[o.name].parallelism for o in self._job.sources)

        def all_follow() -> bool | None:
            self._read()
            read_all = self._meter.has_read_all and (self._cpu is None or self._cpu.has_read_all)
            return (len(self._sources) == tasks and read_all) or None

        wait_for(all_follow, _LATE_S, f"the {tasks} source tasks at {rate:g} records/s", pause_s=_READ_EVERY_S)

    def _read_until_covered(self, begin: float, end: float) -> None:
        while True:
            self._read()
            sources = all(t.emitted.covers(begin, end) for t in self._sources.values())
            if sources and self._meter.covers(begin, end) and (self._cpu is None or self._cpu.covers(begin, end)):
                return
            if time.monotonic() > end + _LATE_S:
                raise SluiceError(
                    f"Flink and its sources did not report on job {self._deployed.id} within {_LATE_S:g} s of the end of a "
                    f"window; measure again, on a machine that is less busy"
                )
            time.sleep(_READ_EVERY_S)

    def _read(self) -> None:
        """Read everything once, and make sure that the job still runs."""
        self._submission.local.check()
        state = self._rest.job(self._deployed.id).state
        if state in ENDED or state in ("FAILING", "RESTARTING"):
            reason = self._rest.failure(self._deployed.id) or "no reason was given"
            raise SluiceError(f"job {self._deployed.id} is {state.lower()} while it was measured: {reason}")
        self._meter.read()
        if self._cpu is not None:
            self._cpu.read()
        for source in self._job.sources:
            for number, report in self._control.reports(self._deployed.sources[source.name]).items():
                if report.order != self._order:
                    continue
                task = self._sources.setdefault(
                    (source.name, number), _SourceTask(report.heard_at - report.seconds, Counter())
                )
                task.since = min(task.since, report.heard_at - report.seconds)
                when = task.since + report.seconds
                if not task.emitted.times or when > task.emitted.times[-1]:
                    task.emitted.read(when, report.emitted, refreshed=True)

    def _measured(self, boundaries: Sequence[float]) -> Measured:
        """What was read, between the boundaries of intervals (`time.monotonic`)."""
        operators = {vertex.id: name for name, vertex in self._deployed.vertices.items()}
        counters = self._meter.increments(boundaries)
        emitted = {task: source.emitted.increments(boundaries) for task, source in self._sources.items()}
        offered = (self._rate or 0.0) * (boundaries[-1] - boundaries[0])
        # Sources deal out their rate in steps, so that a window may hold a few records more than its share.
        share = min(1.0, offered / max(sum(float(np.sum(e)) for e in emitted.values()), 1.0))
        lags = {task: self._lags(task, boundaries[1:]) for task in self._sources}
        for source in self._sources.values():
            source.emitted.forget_before(boundaries[-1])
        return Measured(
            counters={(operators[vertex], task): grown for (vertex, task), grown in counters.items()},
            emitted={task: share * e for task, e in emitted.items()},
            lags=lags,
            cpu_s=None if self._cpu is None else self._cpu.increments(boundaries),
        )

    def _lags(self, task: tuple[str, int], times: Sequence[float]) -> np.ndarray:
        """Records owed at each time, float64[times]."""
        source = self._sources[task]
        share = self._job.operator(task[0]).rate_share / self._deployed.vertices[task[0]].parallelism
        due = (self._rate or 0.0) * share * (np.asarray(times) - source.since)
        return np.maximum(due - np.interp(times, source.emitted.times, source.emitted.values), 0.0)
