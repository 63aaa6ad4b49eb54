"""Metrics from Flink's REST API; the answers are canned, since Flink reports a new metric with a delay."""

from collections.abc import Iterable

import pytest

from flink_client.metrics import readings
from flink_client.metrics.readings import STATE_LATENCY, RestReadings
from flink_client.rest.answers import Vertex
from flink_client.rest.client import FlinkRest

VERTEX = Vertex("v1", "count", parallelism=2, running=2)
WRITTEN = "count.rocksdb_bytes_written"
LATENCY = "count.state_name.s.valueStateGetLatency_mean"


class Growing(FlinkRest):
    """Lists a metric once a task has reported it, as Flink does."""

    def __init__(self) -> None:
        self.reported = {f"{task}.{WRITTEN}": 10.0 for task in range(2)}
        self.looked = 0

    def metric_names(self, job: str, vertex: str) -> frozenset[str]:
        self.looked += 1
        return frozenset(self.reported)

    def vertex_metrics(self, job: str, vertex: str, names: Iterable[str], tasks: int) -> list[dict[str, float]]:
        names = tuple(names)
        return [{n: self.reported[f"{t}.{n}"] for n in names if f"{t}.{n}" in self.reported} for t in range(tasks)]


def test_latencies_that_are_reported_late_and_by_one_task_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(readings.time, "monotonic", lambda: now[0])
    flink = Growing()
    made = RestReadings(flink, "job")
    assert [one.values for one in made.of_vertex(VERTEX, by_operator=True)] == [{"rocksdb_bytes_written": 10.0}] * 2
    flink.reported[f"1.{LATENCY}"] = 4000.0
    now[0] += 4.0
    made.of_vertex(VERTEX, by_operator=True)
    assert flink.looked == 1
    now[0] += 1.0
    first, second = made.of_vertex(VERTEX, by_operator=True)
    assert flink.looked == 2 and STATE_LATENCY not in first.values
    assert second.values == {"rocksdb_bytes_written": 10.0, STATE_LATENCY: pytest.approx(4e-6)}


@pytest.mark.parametrize("of_task", [0.0, 70.0], ids=["1.20", "2.3"])
def test_what_a_source_has_read_is_counted_once(of_task: float) -> None:
    """Flink 2.3 counts it as the task's, too."""
    flink = Growing()
    read = {
        "Source__clicks[8].numRecordsIn": 70.0,
        "Source__clicks[8].numRecordsInErrors": 3.0,
        "numRecordsIn": of_task,
    }
    flink.reported = {f"{task}.{name}": value for task in range(2) for name, value in read.items()}
    found = RestReadings(flink, "job").of_vertex(VERTEX, by_operator=True)
    assert [one.values for one in found] == [{"numRecordsIn": 70.0}] * 2
