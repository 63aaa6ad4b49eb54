"""What arrives in a topic and what a job's source has read of it, twice a second: offsets of the broker and of the source.

The offset of a source is that of the last record that it has emitted (`currentOffset`), as Flink has it at its last refresh
(`REFRESH`). So what waits is known late by a fraction of a second, and never too small by more than a record of each partition.
A job that is started again begins at the offsets of its checkpoint; those of a partition that it has not read from yet are
unknown, so that they count as there.
"""

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final

import pyarrow as pa

from flink_client.rest.client import FlinkRest
from models.closing import Closing
from models.errors import SluiceError
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.offsets import OffsetReader

LOOK_S: Final = 0.5
WAIT_S: Final = 0.008
"""Waits are longer on a machine whose processors others use, and so are the steps of the job, which wait."""
REFRESH: Final[Mapping[str, str]] = {"metrics.fetcher.update-interval": "250", "web.refresh-interval": "250"}
_OFFSET: Final = re.compile(r"0\.(.*KafkaSourceReader\.topic\..+\.partition\.(\d+)\.currentOffset)")
SERIES_SCHEMA: Final = pa.schema(
    [
        pa.field("at_s", pa.float64(), nullable=False),
        pa.field("arrived", pa.int64(), nullable=False),
        pa.field("read", pa.int64()),
        pa.field("job", pa.string()),
        pa.field("waited_s", pa.float64(), nullable=False),
    ]
)
"""A row for each look: seconds since the begin; records that arrived in all partitions and that were read of them, both since
the topic was created (null: no job runs, or it has read nothing yet); Flink's id of the job; what a wait of WAIT_S took."""


@dataclass(frozen=True)
class Look:
    """A row of the series."""

    at_s: float
    arrived: int
    read: int | None
    job: str | None
    waited_s: float


class Recorder(Closing):
    """Records one topic, in a thread of its own, until it is closed."""

    def __init__(self, url: str, connection: KafkaConnection, topic: str) -> None:
        self._rest = FlinkRest(url, patience_s=0.0, timeout_s=5.0)
        self._ends = OffsetReader(connection, [topic])
        self._rows: list[Look] = []
        self._begin = time.monotonic()
        self._source: tuple[str, str] | None = None
        """Job and vertex."""
        self._names: dict[int, str] = {}
        """Metric of each partition's offset."""
        self._restored: dict[int, int] = {}
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._record, daemon=True)
        self._thread.start()

    @property
    def now_s(self) -> float:
        """Seconds since the begin."""
        return time.monotonic() - self._begin

    def follow(self, job: str, source: str, restored: Mapping[int, int] | None = None) -> None:
        """From now on read what this job's source, which has one task, has read.

        Args:
            source: id of its vertex.
            restored: offsets from which it reads, by partition; none: from the begin.
        """
        with self._lock:
            self._source, self._names, self._restored = (job, source), {}, dict(restored or {})

    def lose(self) -> None:
        """The job was stopped."""
        with self._lock:
            self._source = None

    def series(self) -> pa.Table:
        """With SERIES_SCHEMA."""
        return pa.Table.from_pylist([asdict(one) for one in self._rows], schema=SERIES_SCHEMA)

    def last(self) -> Look | None:
        return self._rows[-1] if self._rows else None

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self._rest.close()

    def _record(self) -> None:
        looks = 0
        while not self._ended.wait(max(0.0, looks * LOOK_S - self.now_s)):
            try:
                with self._lock:
                    self._rows.append(self._row())
            except SluiceError:
                pass  # no answer: a hole in the series
            looks = max(looks + 1, int(self.now_s / LOOK_S))

    def _row(self) -> Look:
        read = None if self._source is None else self._read(*self._source)
        at_s = self.now_s
        arrived = sum(one.end for one in self._ends.read().partitions)
        begun = time.monotonic()
        time.sleep(WAIT_S)
        return Look(at_s, arrived, read, None if self._source is None else self._source[0], time.monotonic() - begun)

    def _read(self, job: str, vertex: str) -> int | None:
        """Records read, by offsets; None before the first."""
        if not self._names:
            found = filter(None, map(_OFFSET.fullmatch, self._rest.metric_names(job, vertex)))
            self._names = {int(match[2]): match[1] for match in found}
        values = self._rest.vertex_metrics(job, vertex, self._names.values(), 1)[0] if self._names else {}
        known = {number: int(values[name]) for number, name in self._names.items() if values.get(name, -1) >= 0}
        if not known:
            return None
        return sum((self._restored | {number: offset + 1 for number, offset in known.items()}).values())
