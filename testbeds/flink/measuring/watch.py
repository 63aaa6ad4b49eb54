"""Reads all metrics of one deployment until a period is completely covered."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from flink_client.metrics.readings import REST_REFRESH_S
from flink_client.rest.answers import ENDED
from flink_client.rest.waiting import wait_for
from models.errors import Infeasible, InvalidInput, SluiceError
from testbeds.flink.feeding.emitted import SourceMeter, Task
from testbeds.flink.measuring.activity import Stretch, queue_shares
from testbeds.flink.measuring.cpu_time import CpuMeter
from testbeds.flink.measuring.meter import CounterMeter, Increments
from testbeds.flink.submission import Deployed, Submission
from testbeds.protocol import Disturbed

_READ_EVERY_S: Final = 0.3
_LATE_S: Final = 20.0
"""Time after the end of a window in which its readings must be complete, seconds."""


class Watch:
    """Reads the counters of a deployment's tasks, sources and TaskManagers."""

    def __init__(
        self,
        submission: Submission,
        deployed: Deployed,
        sources: SourceMeter,
        since: float = 0.0,
        each: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            sources: of what is emitted, by the job's sources or into the log that they read.
            since: earliest start of its tasks (`time.monotonic`).
            each: called after everything was read once.
        """
        self._submission, self._deployed, self._rest = submission, deployed, submission.cluster.rest
        self.sources, self._each = sources, each
        vertices, readings = deployed.vertices, submission.cluster.readings(deployed.id)
        self._refresh_s = readings.refresh_s
        self._since_ms = 0
        keyed = [o for o in submission.job.operators if o.keys is not None]
        if submission.program is None:
            keyed = [o for o in keyed if o.cost.state_read_bytes + o.cost.state_write_bytes > 0]
        done = {v.id for v in self._rest.job(deployed.id).vertices if v.is_done}
        reading = [] if submission.program is None or submission.program.kafka is None else submission.job.sources
        by_operator = [vertices[o.name].id for o in (*keyed, *reading)]
        self.meter = CounterMeter(readings, vertices.values(), by_operator, since, done)
        self.cpu = None
        if submission.program is not None:
            self.cpu = CpuMeter(readings, sorted(set(deployed.workers.values())))

    def wait_until_followed(self, reported: bool = False) -> None:
        """Wait until every source task follows the order in force, and every counter was read.

        Counters that are rarely refreshed must have been refreshed since, too, so that the measurement does not use older
        values.

        Args:
            reported: whether each task must have reported since then: a counter is assumed to grow evenly between two
                readings, which is wrong if the rate changed between them.

        Raises:
            SluiceError: that did not happen in time, or the job no longer runs.
        """
        fresh_s = time.monotonic() + REST_REFRESH_S if self._refresh_s > REST_REFRESH_S else 0.0

        def all_follow() -> bool | None:
            self._read()
            if not self.sources.all_follow or not (self.cpu is None or self.cpu.has_read_all):
                return None
            return self.meter.has_news_since(max(fresh_s, self.sources.followed_since if reported else 0.0)) or None

        late_s = _LATE_S + 2 * self._refresh_s
        wait_for(all_follow, late_s, f"the source tasks of job {self._deployed.id}", pause_s=_READ_EVERY_S)

    def read_until(self, end: float) -> None:
        """Continue reading until this time (`time.monotonic`)."""
        self.meter.begin()
        while (left := end - time.monotonic()) > 0:
            self._read()
            time.sleep(min(_READ_EVERY_S, max(left, 0.0)))

    def read_until_covered(self, begin: float, end: float) -> None:
        """Continue reading until every counter is known at both times (`time.monotonic`).

        Raises:
            SluiceError: a counter is still unknown long after the end, or the job no longer runs.
        """
        self.meter.begin()
        while True:
            self._read()
            known = self.sources.covers(begin, end) and self.meter.covers(begin, end)
            if known and self.sources.all_follow and (self.cpu is None or self.cpu.covers(begin, end)):
                return
            if time.monotonic() > end + (late_s := _LATE_S + 2 * self._refresh_s):
                raise SluiceError(
                    f"Flink and its sources did not report on job {self._deployed.id} within {late_s:g} s of the end of a "
                    f"window; measure again, on a machine that is less busy"
                )
            time.sleep(_READ_EVERY_S)

    def increments(self, boundaries: Sequence[float]) -> dict[Task, Increments]:
        """By task: the growth of each of Flink's counters between consecutive times; older readings are dropped."""
        operators = {vertex.id: name for name, vertex in self._deployed.vertices.items()}
        grown = self.meter.increments(boundaries)
        return {(operators[vertex], task): increments for (vertex, task), increments in grown.items()}

    def stretch(self, begin: float, end: float, lag: float, state_bytes: Mapping[str, np.ndarray]) -> Stretch:
        """The readings of a period (`time.monotonic`); older readings are dropped.

        Args:
            lag: records that wait at its end, divided among the source tasks by their pending records.
            state_bytes: by operator, float64[tasks].
        """
        owed, boundaries = self.sources.owed(), [begin, end]
        of_lag = lag / max(sum(owed.values()), 1)
        stretch = Stretch(
            seconds=end - begin,
            counters=self.increments(boundaries),
            emitted=self.sources.increments(boundaries),
            owed={task: of_lag * records for task, records in owed.items()},
            cpu_s=self.cpu_s(boundaries),
            queue_shares=queue_shares(self._rest, self._submission.job, self._deployed),
            state_bytes=state_bytes,
        )
        self.sources.forget_before(end)
        return stretch

    def cpu_s(self, boundaries: Sequence[float]) -> dict[str, np.ndarray] | None:
        """CPU seconds of each TaskManager between consecutive times; None for operators with stated costs."""
        return None if self.cpu is None else self.cpu.increments(boundaries)

    def _read(self) -> None:
        """Read everything once, and check that the job still runs."""
        self._submission.cluster.check()
        status = self._rest.job(self._deployed.id)
        if status.state in ENDED or status.state in ("FAILING", "RESTARTING"):
            reason = self._rest.failure(self._deployed.id) or "no reason was given"
            raise SluiceError(f"job {self._deployed.id} is {status.state.lower()} while it was measured: {reason}")
        self._since_ms = self._since_ms or status.running_since_ms
        if status.running_since_ms != self._since_ms:
            raise SluiceError(f"job {self._deployed.id} was restarted while it was measured; measure again")
        self.meter.read()
        if self.cpu is not None:
            self.cpu.read()
        self.sources.read()
        self._each()


@contextmanager
def disturbances() -> Iterator[None]:
    """Treat errors during a measurement as faults of the testbed, so that the measurement may be repeated."""
    try:
        yield
    except (InvalidInput, Infeasible, Disturbed):
        raise
    except SluiceError as error:
        raise Disturbed(str(error)) from error
