"""The job that an autopilot watches: Flink's id of it, the sensor that looks at it, and a meter since its last change."""

import logging
import time
from collections.abc import Callable

from flink_client.jobs.running import NotRunning, find_job, is_forgotten
from flink_client.metrics.partitions import LogEnds
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from models.scaling.meter import Meter
from pipelines.control.request import AutopilotRequest
from pipelines.control.sensing import Sensor, Sight, record

_logger = logging.getLogger(__name__)


class JobWatch:
    """Looks at one job, whatever id it has at the moment."""

    def __init__(
        self,
        rest: FlinkRest,
        request: AutopilotRequest,
        reads: frozenset[str],
        log_ends: LogEnds | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            reads: metrics that cost requests of their own, as `PolicyKind.reads`.
            log_ends: where what waits is counted by the broker.
            clock: monotonic, seconds.
        """
        self.job: str | None = None
        """Flink's id, as far as it is known."""
        self._rest, self._reads, self._log_ends, self._clock = rest, reads, log_ends, clock
        self._name, self._limits = request.flink_name, request.limits
        self._sensor: Sensor | None = None
        self._meter: Meter | None = None
        self._reads_kafka = False

    @property
    def estimates_lag(self) -> bool:
        """Whether a source was seen to read partitions of Kafka, and no broker counts what waits there."""
        return self._reads_kafka and self._log_ends is None

    @property
    def newest_s(self) -> float | None:
        """When all counters were read that were newer than those before."""
        return None if self._sensor is None else self._sensor.newest_s

    @property
    def failing_checkpoints(self) -> int:
        """Checkpoints that failed in a row, one that does not end included."""
        return 0 if self._sensor is None else self._sensor.failing_checkpoints(self._limits.checkpoint_s)

    def ask(self) -> None:
        """Have Flink fetch the metrics for the next look, a moment before it."""
        if self._sensor is not None:
            try:
                self._sensor.ask()
            except SluiceError as error:
                _logger.debug("the next reading may be late: %s", error)

    def look(self) -> Sight:
        """One look; where the job cannot be read, it says why."""
        try:
            if self._sensor is None:
                self.follow(self._found())
                self.ask()
            assert self._sensor is not None
            sight = self._sensor.look()
            self._reads_kafka |= any(v.is_source and v.partitions for v in sight.vertices)
            return sight
        except SluiceError as error:
            if isinstance(error, NotRunning | InvalidInput) or is_forgotten(self._rest, str(self.job), error):
                self._sensor = self._meter = None  # it may be deployed again, with another id
            return Sight(self._clock(), fault=str(error))

    def metered(self, sight: Sight) -> Meter:
        """What was done since the last change of the job, this look included.

        Raises:
            InvalidInput: as `Sensor.meter`.
        """
        assert self._sensor is not None
        if self._meter is None:
            self._meter = self._sensor.meter(sight)
        record(self._meter, sight)
        return self._meter

    def forget(self) -> None:
        """What was metered no longer counts: the job has changed."""
        self._meter = None

    def changed(self, job: str) -> None:
        """The job was changed by the autopilot, and has this id now."""
        if job != self.job:
            self.follow(job)
        elif self._sensor is not None:
            self._sensor.changed()
        self._meter = None

    def follow(self, job: str) -> None:
        """Look at the job of this id from now on."""
        self.job, self._meter = job, None
        longest_s = self._limits.stale_after_s
        self._sensor = Sensor(self._rest, job, self._reads, self._clock, self._log_ends, longest_s)

    def _found(self) -> str:
        """Flink's id of the job: it keeps its name when it is deployed again, but not its id."""
        name = self._name
        is_id = len(name) == 32 and all(digit in "0123456789abcdef" for digit in name)
        if is_id and self.job is not None:
            name = self.job
        return find_job(self._rest, name, name if is_id else None)
