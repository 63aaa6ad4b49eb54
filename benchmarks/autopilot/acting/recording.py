"""What is recorded of each job, about once a second: what arrived and was committed, its tasks, and whether it runs.

Flink commits offsets when a checkpoint completes, and a checkpoint completes when all records before it have left the last
step. So a committed record has been processed to the end, and the time from its arrival until then is a latency of the whole
job. It is too long by the time to the next checkpoint (`CHECKPOINT_REAL_S`) at most, and by the time between two looks.
"""

import json
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa

from benchmarks.autopilot.acting.lab import Entered
from flink_client.rest.client import FlinkRest
from flink_client.rest.waiting import wait_for
from models.closing import Closing
from models.errors import SluiceError
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.offsets import OffsetReader

LOOK_S: Final = 0.5
"""Between two looks at a job's tasks."""
OFFSETS_EVERY: Final = 2
"""Looks from one reading of offsets to the next."""
FIRST_COMMIT_S: Final = 120.0
SERIES_SCHEMA: Final = pa.schema(
    [
        pa.field("at_s", pa.float64(), nullable=False),
        pa.field("arrived", pa.int64()),
        pa.field("committed", pa.int64()),
        pa.field("tasks", pa.int64()),
        pa.field("slots", pa.int64()),
        pa.field("running", pa.bool_()),
        pa.field("running_since_ms", pa.int64()),
        pa.field("parallelism", pa.string()),
    ]
)
"""A row for each look: real seconds since the begin of the run; records that arrived and that were committed since the topic
was created (null where only the tasks were read); tasks of all vertices and of the widest; whether all tasks run; when the
job was last started, by Flink's clock; tasks by vertex (JSON). Null: no answer, or the job has no tasks at that time."""


class Recorder(Closing):
    """Records jobs, in threads of its own, until it is closed."""

    def __init__(self, url: str, connection: KafkaConnection, jobs: Sequence[tuple[str, Entered]]) -> None:
        """
        Args:
            jobs: each with the topic that it reads.

        Raises:
            SluiceError: a job commits nothing.
        """
        self._jobs = [job for _, job in jobs]
        self._rest = FlinkRest(url, patience_s=0.0, timeout_s=5.0)
        self._readers = [_reader(connection, topic, job.name) for topic, job in jobs]
        self._rows: list[list[dict[str, object]]] = [[] for _ in jobs]
        self._begin = 0.0
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(8)
        self._thread = threading.Thread(target=self._record, daemon=True)

    def start(self, begin: float) -> None:
        """
        Args:
            begin: of the run, by `time.monotonic`.
        """
        self._begin = begin
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        self._pool.shutdown()
        self._rest.close()

    def series(self) -> dict[str, pa.Table]:
        """What was recorded, by job; with SERIES_SCHEMA."""
        return {
            job.name: pa.Table.from_pylist(rows, schema=SERIES_SCHEMA)
            for job, rows in zip(self._jobs, self._rows, strict=True)
        }

    def _record(self) -> None:
        looks = 0
        while not self._ended.is_set():
            next_look = self._begin + looks * LOOK_S
            if self._ended.wait(max(0.0, next_look - time.monotonic())):
                return
            with_offsets = looks % OFFSETS_EVERY == 0
            list(self._pool.map(lambda i, offsets=with_offsets: self._look(i, offsets), range(len(self._jobs))))
            looks = max(looks + 1, int((time.monotonic() - self._begin) / LOOK_S))

    def _look(self, i: int, with_offsets: bool) -> None:
        row: dict[str, object] = {"at_s": time.monotonic() - self._begin}
        try:
            status = self._rest.job(self._jobs[i].id)
            if status.vertices:
                tasks = {v.id: v.parallelism for v in status.vertices}
                row |= {"tasks": sum(tasks.values()), "slots": max(tasks.values()), "parallelism": json.dumps(tasks)}
            row |= {"running": status.all_running, "running_since_ms": status.running_since_ms}
        except SluiceError:
            pass  # unknown at that time
        if with_offsets:
            try:
                reading = self._readers[i].read()
                row |= {
                    "at_s": reading.at_s - self._begin,
                    "arrived": sum(one.end for one in reading.partitions),
                    "committed": sum(one.committed or 0 for one in reading.partitions),
                }
            except SluiceError:
                pass
        self._rows[i].append(row)


def _reader(connection: KafkaConnection, topic: str, group: str) -> OffsetReader:
    def found() -> OffsetReader | None:
        try:
            return OffsetReader(connection, [topic], group)
        except SluiceError:
            return None

    return wait_for(found, FIRST_COMMIT_S, f"the first commit of {group}")
