"""A run of a job that reads topics which Sluice feeds: its program knows nothing of Sluice.

Topics keep what the job does not take, unlike rated sources. So that an overloaded job is not behind for hours, no more is
written than it may work off in a few seconds:

    w <= r (G - L / (T r))        0 <= w <= R                                      (1)

| symbol | meaning | unit |
|---|---|---|
| w | what is written | records/s |
| R | the rate that is offered | records/s |
| r | what the job takes: the most so far, or what it takes now if it is behind | records/s |
| L | records that wait, as far as is known | records |
| G, T | GROWTH, LAG_S | 1, s |

A job that is never behind gets all that is offered, after a start at FIRST_RATE. Behind one that is overloaded there are some
(G - 1) T seconds of records. What waits at the end of one rate is worked off at the next; it never counts as taken of the
next one's records.
"""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.errors import InvalidInput
from models.metrics import SAMPLE_INTERVAL_S
from models.wording import amount
from testbeds.flink.deployed_run import DeployedRun
from testbeds.flink.feeding.emitted import SourceMeter
from testbeds.flink.measuring.samples import TaskIntervals, samples
from testbeds.flink.measuring.watch import Watch, disturbances
from testbeds.flink.submission import Deployed, Submission
from testbeds.kafka.supply import FedTopics
from testbeds.protocol import MeasuredWindow, sample_intervals
from testbeds.steady import is_steady

LAG_S: Final = 5.0
"""Records may wait for so long; the job's own counts are known up to two seconds late."""
FIRST_RATE: Final = 1000.0
"""Records/s while nothing is known of the job."""
GROWTH: Final = 2.0
"""The rate is at most so many times the highest that the job has taken."""
RECENT_S: Final = 2.0
"""What the job takes is a mean over this time at least."""
KEPT_UP_S: Final = 1.0
"""A job that has less than this time's records before it has kept up."""
WINDOW_S: Final = 3.0
MOST_WINDOWS: Final = 20
_ALL_IT_TAKES: Final = 1e9
_NEW_ORDER: Final = 0.05
"""An order is changed for a difference of more than this share of the rate."""
_ON_THE_WAY: Final = ("warmup", "cooldown", "ramp")
PATIENCE_S: Final = 60.0
SLOWER: Final = 16.0
"""A job that is held to its cores takes at least one in so many records of those that it took before."""
WRITTEN: Final = 0.99
"""Share of the rate from which on it counts as written; as for a target that is sustained."""


@dataclass(frozen=True)
class _Window:
    measured: TaskIntervals
    written: float
    """Records."""
    read: float
    waiting: float
    """At its end."""


class FedRun(DeployedRun):
    """Implements `testbeds.protocol.Run` in real time: `inject` takes its seconds, and some more until Flink has reported."""

    def __init__(
        self,
        submission: Submission,
        deployed: Deployed,
        name: str,
        on_close: Callable[[], None],
        fed: FedTopics,
        *,
        say: Callable[[str], None],
        undisturbed: Callable[[Callable[[], TaskIntervals]], TaskIntervals] | None = None,
    ) -> None:
        """
        Args:
            name: of the run, for the samples' column `run`.
            fed: the topics; closed with the run.
            say: called with remarks for people.
            undisturbed: as for `FlinkRun`.
        """
        super().__init__(submission, deployed, name, on_close, fed)
        self._fed, self._say, self._undisturbed = fed, say, undisturbed
        written = SourceMeter(fed.control, {feed: feed for feed in fed.shares}, dict.fromkeys(fed.shares, 1))
        self._watch = Watch(submission, deployed, written, each=self._govern)
        self._sources = frozenset(deployed.vertices[o.name].id for o in submission.job.sources)
        self._read: deque[tuple[float, float]] = deque()
        """When (`time.monotonic`) the job had read how many records: the refreshes of the last seconds."""
        self._taken = 0.0
        """The most records/s that it has taken."""
        self._wanted = self._offered = self._ordered_at = 0.0
        self._is_behind = self._has_said = False

    def inject(self, rate: float, seconds: float, phase: str) -> MeasuredWindow:
        """See `testbeds.protocol.Run.inject`; records that wait are not dropped, but worked off at the next rate.

        Raises:
            SluiceError: the run was closed.
            Disturbed: the job failed, a process ended, or Flink did not report for too long; there is no window then.
        """
        self._check_open()
        intervals = sample_intervals(rate, seconds)
        with disturbances():
            self._want(rate)
            self._watch.wait_until_followed(phase not in _ON_THE_WAY)
            found: list[_Window] = []

            def window() -> TaskIntervals:
                found.append(self._window(intervals))
                return found[-1].measured

            counts = phase not in _ON_THE_WAY
            measured = self._undisturbed(window) if counts and self._undisturbed is not None else window()
        table = samples(self._submission.job, self._deployed, measured, self._name, self._elapsed_s, phase)
        self._elapsed_s += seconds
        chosen = next(one for one in found if one.measured is measured)
        kept_up = chosen.waiting <= KEPT_UP_S * min(rate, self._takes)
        achieved = min(rate, (chosen.written if kept_up else chosen.read) / seconds)
        if counts and kept_up:
            self._remark(rate, achieved)
        return MeasuredWindow(rate, achieved, seconds, chosen.waiting, table)

    def warm_up(self) -> float:
        """Overload the job until it gets no faster, so that the JVMs have compiled it, and let it work off what waits.

        Returns:
            The most records/s that it took.

        Raises:
            InvalidInput: it reads nothing of what is written.
            Disturbed: as for `inject`.
        """
        rates: list[float] = []
        with disturbances():
            self._want(_ALL_IT_TAKES)
            self._watch.wait_until_followed()
            begin = self._progress()
            for _ in range(MOST_WINDOWS):
                self._watch.read_until(time.monotonic() + WINDOW_S)
                end = self._progress()
                if end[0] > begin[0]:
                    rates.append((end[1] - begin[1]) / (end[0] - begin[0]))
                    begin = end
                if is_steady(rates):
                    break
            if not begin[1]:
                raise InvalidInput(
                    f"job {self._submission.job.name!r} must read the topics that are fed, from their begin, but has read no "
                    f"record in {MOST_WINDOWS * WINDOW_S:g} s; check the topics' names, the address of the brokers and the "
                    f"offsets that it starts from"
                )
            self._work_off()
        return max(rates)

    def find_pace(self) -> None:
        """Write more and more until the job falls behind and its buffers are full. To be called where it has become slower, by
        quotas for example.

        Raises:
            Disturbed: as for `inject`.
        """
        with disturbances():
            self._read.clear()
            self._taken /= SLOWER
            self._is_behind = False
            self._want(_ALL_IT_TAKES)
            until = time.monotonic() + PATIENCE_S
            while self._waiting() < RECENT_S * self._takes and time.monotonic() < until:
                self._watch.read_until(time.monotonic() + SAMPLE_INTERVAL_S)

    # --- feeding

    def _want(self, rate: float) -> None:
        self._wanted = rate
        self._offer(self._may_write())

    def _work_off(self) -> None:
        """Write little until hardly a record waits."""
        self._want(min(FIRST_RATE, self._taken / GROWTH))
        until = time.monotonic() + PATIENCE_S
        while self._waiting() > KEPT_UP_S * self._takes and time.monotonic() < until:
            self._watch.read_until(time.monotonic() + SAMPLE_INTERVAL_S)

    def _offer(self, rate: float) -> None:
        self._offered, self._ordered_at = rate, time.monotonic()
        self._watch.sources.follow(self._fed.offer(rate))

    def _govern(self) -> None:
        """Called after each reading: note what the job takes, and change what is written if it has to be."""
        self._fed.check()
        self._note_taken()
        rate = self._may_write()
        # The feeder must have reported that it follows an order before the next one.
        is_late = time.monotonic() - self._ordered_at > RECENT_S
        if is_late and abs(rate - self._offered) > _NEW_ORDER * self._offered:
            self._offer(rate)

    def _may_write(self) -> float:
        """Records/s to write at this moment, Eq. 1."""
        return min(self._wanted, max(0.0, self._takes * GROWTH - self._waiting() / LAG_S))

    @property
    def _takes(self) -> float:
        """Records/s that the job takes, as far as is known; below FIRST_RATE only what was seen behind it."""
        return self._taken if self._is_behind else max(self._taken, FIRST_RATE)

    def _note_taken(self) -> None:
        now = self._watch.meter.known_until(self._sources)
        if now <= self._progress()[0]:
            return
        self._read.append((now, float(self._total_read([now])[0])))
        while len(self._read) > 2 and now - self._read[1][0] >= RECENT_S:
            self._read.popleft()
        begin_s, read = self._read[0]
        if now - begin_s >= RECENT_S:
            recent = (self._read[-1][1] - read) / (now - begin_s)
            self._is_behind = recent > 0 and self._waiting() > KEPT_UP_S * recent
            self._taken = recent if self._is_behind else max(self._taken, recent)

    def _progress(self) -> tuple[float, float]:
        """The last reading of what the job has read."""
        return self._read[-1] if self._read else (0.0, 0.0)

    def _waiting(self) -> float:
        """Records that were written and, as far as is known, not read."""
        return sum(self._watch.sources.last().values()) - self._progress()[1]

    # --- measuring

    def _window(self, intervals: int) -> _Window:
        """What happens from now on for so many intervals."""
        begin = time.monotonic()
        boundaries = [begin + SAMPLE_INTERVAL_S * i for i in range(intervals + 1)]
        self._watch.read_until_covered(begin, boundaries[-1])
        written = np.sum(list(self._watch.sources.positions(boundaries).values()), axis=0)
        read = self._total_read(boundaries)
        lag = np.maximum(written - read, 0.0)[1:]
        grown = self._watch.increments(boundaries)
        tasks = {name: self._deployed.vertices[name].parallelism for name in self._shares}
        of_tasks = [(name, task) for name in tasks for task in range(tasks[name])]
        self._watch.sources.forget_before(boundaries[-1])
        measured = TaskIntervals(
            counters=grown,
            emitted={task: grown[task]["numRecordsIn"] for task in of_tasks},
            lags={(name, task): lag * self._shares[name] / tasks[name] for name, task in of_tasks},
            cpu_s=self._watch.cpu_s(boundaries),
        )
        return _Window(measured, float(written[-1] - written[0]), float(read[-1] - read[0]), float(lag[-1]))

    @property
    def _shares(self) -> dict[str, float]:
        return {o.name: o.rate_share for o in self._submission.job.sources}

    def _total_read(self, times: list[float]) -> np.ndarray:
        """Records that the job had read at these times."""
        return self._watch.meter.total("numRecordsIn", self._sources, times)

    def _remark(self, rate: float, achieved: float) -> None:
        """Say once if not the job, but what was written may be the limit."""
        if achieved < WRITTEN * rate and not self._has_said:
            self._has_said = True
            self._say(
                f"{self._name}: {amount(rate)} records/s were to be written to the topics, but {achieved:,.0f} were; the job "
                f"kept up, and may take more"
            )
