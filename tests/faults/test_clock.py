"""A clock that jumps: versions are ordered by their numbers, and seconds are counted by a clock that cannot jump."""

import ast
from pathlib import Path

import pytest

from models.plan.content import PlanContent
from pipelines.inputs.parsing.documents import parse_json
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

WALL_CLOCK = {
    "pipelines/arena/log.py",
    "pipelines/registry/review/log.py",
    "pipelines/registry/selection_log.py",
    "testbeds/feeding/control.py",
    "testbeds/kafka/recording/sampling.py",
    "flink_client/metrics/prometheus.py",
    "pipelines/review/log.py",
    "pipelines/selection_log.py",
}
"""Modules that read the time of day, to pass it to another program (MLflow, Flink's sources, Kafka, Prometheus)."""


@pytest.fixture
def content(root: Path) -> PlanContent:
    document = parse_json((root / "tests" / "data" / "plans" / "nexmark-q5-v1.json").read_text()).data
    return PlanContent.model_validate({name: document[name] for name in PlanContent.model_fields if name in document})


def test_the_newest_version_is_that_of_the_highest_number_whatever_the_clock_said(
    tmp_path: Path, content: PlanContent
) -> None:
    store = PlanStore(Workspace(tmp_path))
    first = store.publish(content, "2099-12-31T23:59:59+00:00")
    second = store.publish(content.model_copy(update={"target_rate": 900_000.0}), "1970-01-01T00:00:00+00:00")
    assert (first.version, second.version) == (1, 2)
    assert store.current(content.job) == second
    assert store.rollback(content.job, 1, "1999-01-01T00:00:00+00:00", by="Ada").version == 3
    assert store.current(content.job).target_rate == content.target_rate


def _asks_for_the_time_of_day(path: Path) -> bool:
    calls = [node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    called = {ast.unparse(call) for call in calls}
    return bool(called & {"time.time", "time.time_ns", "datetime.utcnow"})


def test_no_duration_is_the_difference_of_two_times_of_day(root: Path) -> None:
    files = [
        path
        for room in ("models", "pipelines", "spark", "testbeds", "plugins", "dags")
        for path in (root / room).rglob("*.py")
    ]
    assert {str(path.relative_to(root)) for path in files if _asks_for_the_time_of_day(path)} <= WALL_CLOCK
