"""A server that answers as a Prometheus does that has scraped the job of `ObservedFlink`."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from answering.server import AnsweringServer
from flink.observed import COUNT, SINK, SOURCE

TASKS = {SOURCE: 1, COUNT: 2, SINK: 2}
RATE = 600.0
TASK, OPERATOR = "flink_taskmanager_job_task_", "flink_taskmanager_job_task_operator_"
CONSUMER = f"{OPERATOR}KafkaSourceReader_KafkaConsumer_"


@dataclass
class Scraping(AnsweringServer):
    """Scraped the job of `ObservedFlink` every 5 s until now: 600 records/s, busy for 60 % of the time."""

    scrapes: int = 13
    skips: frozenset[int] = frozenset()
    """Scrapes that are missing."""
    later_s: float = 0.0
    """By how much later each task of a vertex is scraped than the one before it, on another TaskManager."""
    restart: int | None = None
    """Scrape from which on tasks count from 0 again."""
    silent: frozenset[str] = frozenset()
    """Metrics that are not there."""
    fetched_ahead: float | None = None
    """Records that Kafka's consumer has fetched and the source not read; None for a source that does not report it."""
    scrapers: tuple[str, ...] = ("flink",)
    answer: tuple[int, object] | None = None
    queries: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.began_s = time.time() - 5.0 * self.scrapes
        super().__init__(self._respond)

    def _respond(self, request: BaseHTTPRequestHandler, _body: bytes) -> tuple[int, object]:
        query = parse_qs(urlsplit(request.path).query)["query"][0]
        self.queries.append(query)
        name = query.partition("{")[0]
        result = [] if name in self.silent else [one for job in self.scrapers for one in self._series(name, job)]
        return self.answer or (200, {"status": "success", "data": {"resultType": "matrix", "result": result}})

    def _series(self, name: str, job: str) -> Iterator[object]:
        if name.startswith("flink_taskmanager_Status_JVM"):
            each = {"CPU_Time": 5e8, "GarbageCollector_All_Time": 10.0}.get(
                name.removeprefix("flink_taskmanager_Status_JVM_")
            )
            level = 4.0 if name.endswith("Max") else 1.0
            values = [[when, str(level if each is None else each * ran)] for when, ran, _ in self._times()]
            yield {"metric": {"__name__": name, "tm_id": "tm1", "job": job, "instance": "a"}, "values": values}
            return
        for vertex, tasks in TASKS.items():
            for task in range(tasks):
                yield from self._of_task(name, vertex, task, tasks, job)

    def _of_task(self, name: str, vertex: str, task: int, tasks: int, job: str) -> Iterator[object]:
        counted = RATE / tasks
        per_s = {
            f"{TASK}numRecordsIn": 0.0 if vertex == SOURCE else counted,
            f"{TASK}numRecordsOut": 0.0 if vertex == SINK else counted,
            f"{TASK}numBytesOut": 50 * counted,
            f"{TASK}accumulateBusyTimeMs": 600.0,
            f"{TASK}accumulateBackPressuredTimeMs": 100.0,
            f"{TASK}accumulateIdleTimeMs": 300.0,
        }
        if vertex == SOURCE:
            # Every other record that is read is dropped.
            per_s |= {f"{OPERATOR}numRecordsOut": counted, f"{OPERATOR}numRecordsIn": 2 * counted}
        if vertex == COUNT:
            per_s |= {f"{OPERATOR}rocksdb_{n}": 10 * counted for n in ("bytes_read", "bytes_written")}
            per_s |= {f"{OPERATOR}rocksdb_block_cache_{n}": counted for n in ("hit", "miss")}
        labels = {"__name__": name, "task_id": vertex, "subtask_index": str(task), "tm_id": "tm1", "job": job}
        times = [(when + self.later_s * task, ran, of) for when, ran, of in self._times()]
        if vertex == SOURCE and name == f"{OPERATOR}pendingRecords":
            yield {"metric": labels | {"task_attempt_num": "0"}, "values": [[w, "50"] for w, _, _ in times]}
        if vertex == SOURCE and name == f"{OPERATOR}currentEmitEventTimeLag":
            for operator, age_ms in (("Source: cards", "40"), ("Source: other", "-1")):
                of_one = {"operator_name": operator, "task_attempt_num": "0"}
                yield {"metric": labels | of_one, "values": [[w, age_ms] for w, _, _ in times]}
        if vertex == SOURCE and self.fetched_ahead is not None and name == f"{CONSUMER}records_consumed_total":
            values = [[w, str(2 * counted * ran + self.fetched_ahead)] for w, ran, _ in times]
            yield {"metric": labels | {"task_attempt_num": "0"}, "values": values}
        if vertex == SOURCE and name.endswith("currentOffset"):
            for partition in "01234567":
                place = {"topic": "cards", "partition": partition, "task_attempt_num": "0"}
                yield {"metric": labels | place, "values": [[w, "1"] for w, _, _ in times]}
        for attempt in (0, 1) if name in per_s else ():
            values = [[when, str(per_s[name] * ran)] for when, ran, of in times if of == attempt]
            if values:
                yield {"metric": labels | {"task_attempt_num": str(attempt)}, "values": values}

    def _times(self) -> list[tuple[float, float, int]]:
        """When it was scraped, how long tasks had run, and their attempt."""
        begin = self.scrapes if self.restart is None else self.restart
        kept = [number for number in range(self.scrapes) if number not in self.skips]
        return [(self.began_s + 5 * n, 5.0 * (n if n < begin else n - begin + 1), int(n >= begin)) for n in kept]
