"""What is exported, read by the parser of another project from the answer of the real server."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

from autopilots.records import (
    BUSY_JOB,
    DAMAGED_AUTOPILOT,
    SILENT_JOB,
    STOPPED_JOB,
    decided,
    rescale,
    state_of,
    store_autopilots,
)
from models.errors import InvalidInput
from pipelines.control.files import AutopilotFiles
from pipelines.monitoring.exporter import AutopilotCollector
from pipelines.monitoring.serving import served_metrics
from pipelines.store.workspace import Workspace

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def _parsed(text: str) -> Samples:
    families = text_string_to_metric_families(text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


class Scraped:
    """A collector of a workspace, with its clock."""

    def __init__(self, workspace: Workspace) -> None:
        self.at = datetime.now(UTC)
        self.registry = CollectorRegistry()
        self.registry.register(AutopilotCollector(workspace, lambda: self.at))

    def samples(self) -> Samples:
        return _parsed(generate_latest(self.registry).decode())


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


@pytest.fixture
def scraped(workspace: Workspace) -> Iterator[Scraped]:
    yield Scraped(workspace)


def _of(samples: Samples, name: str, job: str, **labels: str) -> float | None:
    return samples.get((f"sluice_autopilot_{name}", tuple(sorted({"job_name": job, **labels}.items()))))


def test_gauges_are_those_of_the_newest_round(workspace: Workspace, scraped: Scraped) -> None:
    store_autopilots(workspace, scraped.at, minutes=20)
    samples = scraped.samples()
    assert _of(samples, "lag_seconds", BUSY_JOB) == 0.5
    assert _of(samples, "tasks", BUSY_JOB, vertex="count") == 4
    assert _of(samples, "price_dollars_per_hour", BUSY_JOB) == pytest.approx(0.25)
    assert _of(samples, "state_bytes", BUSY_JOB) == 64 * 1024 * 1024
    assert _of(samples, "lateness_budget_spent_ratio", BUSY_JOB) == pytest.approx(0.45)  # 0.0045 of 0.01
    assert _of(samples, "capacity_records_per_second", BUSY_JOB) == 3000.0
    low = _of(samples, "forecast_records_per_second", BUSY_JOB, bound="low")
    assert low == pytest.approx(0.9 * (_of(samples, "arriving_records_per_second", BUSY_JOB) or 0.0))
    assert (
        samples["sluice_autopilot_info", (("flink", "http://flink:8081"), ("job_name", BUSY_JOB), ("policy", "sluice"))]
        == 1
    )


def test_what_is_unknown_or_old_has_no_sample(workspace: Workspace, scraped: Scraped) -> None:
    store_autopilots(workspace, scraped.at, minutes=2)
    samples = scraped.samples()
    for job in (STOPPED_JOB, SILENT_JOB):
        assert _of(samples, "lag_seconds", job) is None and _of(samples, "slots", job) is None
    beat = _of(samples, "beat_timestamp_seconds", SILENT_JOB)
    assert beat == pytest.approx((scraped.at - timedelta(minutes=12)).timestamp())
    assert {job: _of(samples, "unreadable", job) for job in (BUSY_JOB, DAMAGED_AUTOPILOT)} == {
        BUSY_JOB: 0.0, DAMAGED_AUTOPILOT: 1.0,
    }  # fmt: skip
    conditions = {
        job: [dict(labels)["sluice_autopilot_condition"] for (name, labels), value in samples.items()
              if name == "sluice_autopilot_condition" and dict(labels)["job_name"] == job and value]
        for job in (BUSY_JOB, STOPPED_JOB, SILENT_JOB)
    }  # fmt: skip
    assert conditions == {BUSY_JOB: ["acting"], STOPPED_JOB: ["stopped"], SILENT_JOB: ["silent"]}


def test_counters_begin_at_nothing_and_count_each_record_once(workspace: Workspace, scraped: Scraped) -> None:
    files, begin = AutopilotFiles(workspace, BUSY_JOB), scraped.at
    files.keep(decided(1, begin - timedelta(minutes=1), done="rescaled", rescale=rescale(1, 2)))
    files.keep_state(state_of(decided(1, begin), begin))
    before = scraped.samples()
    assert {_of(before, "rescales_total", BUSY_JOB, outcome=one) for one in ("rescaled", "failed")} == {0.0}
    kinds: list[dict[str, Any]] = [
        {"done": "rescaled", "rescale": rescale(2, 4), "decision_s": 0.2},
        {"done": "rolled-back", "rescale": rescale(4, 5, downtime_s=None)},
        {"done": "held-back", "held": "back-off", "rounds": 6},
    ]
    for number, kind in enumerate(kinds, start=2):
        files.keep(decided(number, begin + timedelta(seconds=number), **kind))
    for _ in range(2):
        samples = scraped.samples()
        assert _of(samples, "rescales_total", BUSY_JOB, outcome="rescaled") == 1
        assert _of(samples, "rescales_total", BUSY_JOB, outcome="rolled-back") == 1
        assert _of(samples, "decisions_total", BUSY_JOB, done="held-back") == 6
        assert _of(samples, "holds_total", BUSY_JOB, limit="back-off") == 6
        assert _of(samples, "downtime_seconds_total", BUSY_JOB) == 1.5
        assert _of(samples, "decision_seconds_count", BUSY_JOB) == 3
        assert _of(samples, "decision_seconds_bucket", BUSY_JOB, le="0.01") == 2
        assert _of(samples, "decision_seconds_sum", BUSY_JOB) == pytest.approx(0.22)


def test_the_server_answers_with_openmetrics_on_loopback(workspace: Workspace) -> None:
    store_autopilots(workspace, minutes=2)
    wanted = {"Accept": "application/openmetrics-text; version=1.0.0"}
    with served_metrics(workspace, 0) as address:
        assert address.startswith("http://127.0.0.1:")
        answer = httpx.get(address, headers=wanted, timeout=60)
        assert answer.headers["content-type"].startswith("application/openmetrics-text")
        assert _of(_parsed(answer.text), "dry_run", SILENT_JOB) == 1
        port = int(address.split(":")[2].split("/")[0])
        with pytest.raises(InvalidInput, match="give another port"), served_metrics(workspace, port):
            pass
    with pytest.raises(httpx.ConnectError):
        httpx.get(address, timeout=5)
