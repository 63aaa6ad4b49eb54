"""A run of a job on Flink: its sources get a rate or read a log; counters become samples."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from models.job import Job
from models.metrics import SAMPLE_INTERVAL_S, Activity
from testbeds.feeding.control import SourceControl
from testbeds.flink.deployed_run import DeployedRun
from testbeds.flink.feeding.durable_log import DurableLog
from testbeds.flink.feeding.emitted import SourceMeter
from testbeds.flink.feeding.in_step import InStep
from testbeds.flink.measuring.activity import activity
from testbeds.flink.measuring.samples import Task, TaskIntervals, samples
from testbeds.flink.measuring.state import StateMeter
from testbeds.flink.measuring.watch import Watch, disturbances
from testbeds.flink.programs.user_programs import recorded_tables
from testbeds.flink.rescaling import Arrangement, rescaled
from testbeds.flink.submission import Deployed, Submission
from testbeds.protocol import Configuration, MeasuredWindow, Rescale, Served, sample_intervals, served_intervals

_AT_ONCE_S: Final = 5.0
"""Calls of `serve` within this time of each other are continuous: the next window begins where the last one ended."""
_ON_THE_WAY: Final = ("warmup", "cooldown", "ramp")
"""Phases whose rates need not be exact to the second."""
_BYTES_PER_MB: Final = 2.0**20


class FlinkRun(DeployedRun):
    """Implements `testbeds.protocol.ElasticRun` in real time: `inject` and `serve` take their seconds, and up to two more.

    CPU seconds are those that operators with stated costs are limited to. For programs, a TaskManager's CPU time is divided
    among its tasks by busy time, which is the most that a task can have used. State latency is not reported.
    """

    def __init__(
        self,
        submission: Submission,
        deployed: Deployed,
        name: str,
        on_close: Callable[[], None],
        control: SourceControl,
        *,
        configuration: Configuration,
        arrange: Callable[[Configuration], Arrangement],
        undisturbed: Callable[[Callable[[], TaskIntervals]], TaskIntervals] | None = None,
    ) -> None:
        """
        Args:
            name: of the run, for the samples' column `run`.
            control: sets the rates of the sources; closed with the run.
            on_close: called once, when the run is closed.
            configuration: the deployed one.
            arrange: plans the change to another configuration; raises InvalidInput or Infeasible.
            undisturbed: measures a window of `inject` that counts, and repeats it if other load slowed the job; None: each
                window is measured once.
        """
        super().__init__(submission, deployed, name, on_close, control)
        self._undisturbed = undisturbed
        self._configuration, self._arrange = configuration, arrange
        self._control = control
        self._log = DurableLog({o.name: o.rate_share for o in self._job.sources})
        recorded, sources = recorded_tables(submission.program), set(deployed.sources.values())
        self._in_step = InStep({s: recorded[s] for s in sources} if sources <= recorded.keys() else {})
        self._down_s = 0.0
        self._owed: dict[Task, float] = {}
        """Records that source tasks were behind at the end of the last window of `inject`, at its rate."""
        self._rate: float | None = None
        self._end: float | None = None
        self._watch_anew()

    @property
    def _job(self) -> Job:
        return self._submission.job

    @property
    def configuration(self) -> Configuration:
        """The running configuration."""
        return self._configuration

    def inject(self, rate: float, seconds: float, phase: str) -> MeasuredWindow:
        """See `testbeds.protocol.Run.inject`.

        Raises:
            SluiceError: the run was closed.
            Disturbed: the job failed, a process of the cluster ended, or Flink did not report for too long; there is no
                window then.
        """
        self._check_open()
        intervals = sample_intervals(rate, seconds)
        with disturbances():
            self._pass_downtime()
            counts = phase not in _ON_THE_WAY
            self._offer(rate, reported=counts)
            owed = self._owed
            found: list[TaskIntervals] = []

            def window() -> TaskIntervals:
                if found:
                    self._rate = None
                    self._offer(rate, reported=counts)
                    self._owed = owed  # discard the window that does not count
                found.append(self._window(rate, intervals))
                return found[-1]

            measured = self._undisturbed(window) if counts and self._undisturbed is not None else window()
        table = samples(self._job, self._deployed, measured, self._name, self._elapsed_s, phase)
        self._elapsed_s += seconds
        achieved = sum(float(np.sum(emitted)) for emitted in measured.emitted.values()) / seconds
        pending = float(sum(lag[-1] for lag in measured.lags.values()))
        return MeasuredWindow(rate, achieved, seconds, pending, table)

    def serve(self, rate: float, seconds: float) -> Served:
        """See `testbeds.protocol.ElasticRun.serve`.

        A window begins where the last one ended, if only a few seconds have passed since; records that arrive and are read
        in between belong to its first interval. A new rate applies from the call on. The downtime of a rescale passes here:
        records that arrive in it wait in the log when the job resumes.

        Raises:
            SluiceError: the run was closed.
            Disturbed: as for `inject`.
        """
        self._check_open()
        ends = SAMPLE_INTERVAL_S * np.arange(1, served_intervals(rate, seconds) + 1)
        down_s = min(self._down_s, seconds)
        with disturbances():
            served = self._down(rate, ends) if down_s == seconds else self._up(rate, ends, down_s)
        self._down_s -= down_s
        self._elapsed_s += seconds
        return served

    def rescale(self, configuration: Configuration) -> Rescale:
        """See `testbeds.protocol.ElasticRun.rescale`. Its real duration is measured, and passes in the next `serve`.

        Raises:
            SluiceError: the run was closed.
            Disturbed: the savepoint failed, or the job does not run again.
        """
        self._check_open()
        arrangement = self._arrange(configuration)
        with disturbances():
            state_mb = sum(float(sizes.sum()) for sizes in self._state.now().values()) / _BYTES_PER_MB
            positions = self._hold()
            done = rescaled(self._submission, self._deployed, configuration.parallelism, arrangement)
        self._log.redeployed(positions)
        self._deployed, self._configuration = done.deployed, configuration
        self._watch_anew(done.tasks_since)
        self._down_s += done.downtime_s
        return Rescale(downtime_s=self._down_s, state_mb=state_mb)

    def _watch_anew(self, since: float = 0.0) -> None:
        self._watch = Watch(self._submission, self._deployed, SourceMeter.of_job(self._control, self._deployed), since)
        keep = [
            o.name for o in self._job.operators if o.state is not None and self._submission.cluster.takes_savepoints
        ]
        stateful = {name: self._deployed.vertices[name] for name in keep}
        self._state = StateMeter(self._submission.cluster.rest, self._deployed.id, stateful)
        self._rate = self._end = None

    # --- orders

    def _follow(self, order: str) -> None:
        self._watch.sources.follow(order)
        self._watch.wait_until_followed()

    def _rates(self, rate: float) -> dict[str, float]:
        """Rates by the names under which the sources' rates are set."""
        return {self._deployed.sources[o.name]: rate * o.rate_share for o in self._job.sources}

    def _offer(self, rate: float, reported: bool) -> None:
        """Set the rate, and wait until every source task follows it; if the next metrics must only cover this rate, also wait
        until Flink has reported since.
        """
        if rate != self._rate:
            if not self._log.stands:
                self._hold()
            self._watch.sources.follow(self._control.offer(self._rates(rate), self._in_step.align(self._taken())))
            self._rate = rate
            self._owed = {}
        self._watch.wait_until_followed(reported)

    def _hold(self) -> dict[str, float]:
        """Stop the sources and the log. Returns how many events each source's tasks have taken."""
        now = time.monotonic()
        self._follow(self._control.offer(self._rates(0.0), self._in_step.shifts))
        positions = self._watch.sources.last()
        self._log.stop(now, positions)
        self._rate = self._end = None
        return positions

    def _fill(self, rate: float, now: float) -> None:
        """Let records arrive in the log at a rate; the source tasks may follow a little later."""
        lanes = {self._deployed.sources[name]: events for name, events in self._log.in_lanes(now).items()}
        self._watch.sources.follow(self._control.fill(self._rates(rate), lanes, self._in_step.shifts))

    def _taken(self) -> dict[str, float]:
        """Events that the tasks of each source have taken, by the names under which the sources' rates are set."""
        return {
            name: self._log.taken_before[source]
            + sum(report.emitted_in_all for report in self._control.reports(name).values())
            for source, name in self._deployed.sources.items()
        }

    # --- injecting

    def _pass_downtime(self) -> None:
        """Inject in whole intervals, while no record arrives in the log."""
        self._elapsed_s += SAMPLE_INTERVAL_S * math.ceil(self._down_s / SAMPLE_INTERVAL_S)
        self._down_s = 0.0

    def _window(self, rate: float, intervals: int) -> TaskIntervals:
        """The boundaries of this many intervals from now on."""
        begin = time.monotonic()
        boundaries = [begin + SAMPLE_INTERVAL_S * i for i in range(intervals + 1)]
        self._watch.read_until_covered(begin, boundaries[-1])
        return self._measured(rate, boundaries)

    def _measured(self, rate: float, boundaries: Sequence[float]) -> TaskIntervals:
        """The readings between the boundaries of intervals (`time.monotonic`)."""
        sources = self._watch.sources
        emitted = sources.increments(boundaries)
        offered = rate * (boundaries[-1] - boundaries[0])
        # Sources emit in steps, so a window may contain a few records more than its share.
        share = min(1.0, offered / max(sum(float(np.sum(e)) for e in emitted.values()), 1.0))
        lags = {task: self._lags(rate, task, own) for task, own in emitted.items()}
        self._owed = {task: float(lag[-1]) for task, lag in lags.items()}
        sources.forget_before(boundaries[-1])
        return TaskIntervals(
            counters=self._watch.increments(boundaries),
            emitted={task: share * e for task, e in emitted.items()},
            lags=lags,
            cpu_s=self._watch.cpu_s(boundaries),
        )

    def _lags(self, rate: float, task: Task, emitted: np.ndarray) -> np.ndarray:
        """Records that a task is behind at the end of each interval, without the time between windows."""
        of_task = rate * self._job.operator(task[0]).rate_share / self._deployed.vertices[task[0]].parallelism
        return np.maximum(self._owed.get(task, 0.0) + np.cumsum(of_task * SAMPLE_INTERVAL_S - emitted), 0.0)

    # --- serving

    def _down(self, rate: float, ends: np.ndarray) -> Served:
        """A window during which the job is down; it returns at once, since the real rescale is over already."""
        arrived = self._log.stopped_at + rate * ends
        self._log.wait(rate * float(ends[-1]))
        by_source = self._log.read_before
        read = np.full(len(ends), sum(by_source.values()))
        return self._served(ends, 0.0, arrived, read, self._log.lag(arrived, by_source), {})

    def _up(self, rate: float, ends: np.ndarray, down_s: float) -> Served:
        begin = self._begin(rate, down_s)
        times = begin + np.maximum(ends - down_s, 0.0)
        end = float(times[-1])
        self._watch.read_until(end)
        self._state.ask()
        self._watch.read_until_covered(begin, end)
        arrived = self._log.arrived(times) + rate * np.minimum(ends - down_s, 0.0)
        read = self._log.read(self._watch.sources.positions(times))
        lag = self._log.lag(arrived, read)
        stretch = self._watch.stretch(begin, end, float(lag[-1]), self._state.read())
        self._end = end
        did = activity(self._job, self._deployed, stretch)
        return self._served(ends, float(ends[-1]) - down_s, arrived, np.sum(list(read.values()), axis=0), lag, did)

    def _served(
        self,
        ends: np.ndarray,
        running_s: float,
        arrived: np.ndarray,
        read: np.ndarray,
        lag: np.ndarray,
        did: Mapping[str, Activity],
    ) -> Served:
        """A window, from the totals of arrived and read records; those between two windows belong to the later one."""
        came, were_read = self._log.since_last(arrived, read)
        return Served(float(ends[-1]), running_s, came, were_read, lag, did)

    def _begin(self, rate: float, down_s: float) -> float:
        """Let records arrive at the rate. Returns when the window begins (`time.monotonic`)."""
        if self._end is None:
            positions = self._hold()
            now = time.monotonic()
            self._log.resume(rate, now, rate * down_s, positions)
            self._fill(rate, now)
            return now
        if rate != self._log.rate:
            now = time.monotonic()
            self._log.change(rate, now)
            self._fill(rate, now)
        if time.monotonic() - self._end <= _AT_ONCE_S:
            return self._end
        self._watch.wait_until_followed()
        return time.monotonic()
