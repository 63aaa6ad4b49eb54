"""Metrics of plans and models, and that every alert names what is exported."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from prometheus_client.core import Metric

from autopilots.records import store_autopilots
from models.plan.content import Plan
from pipelines.apply.applied import Applied, Outcome
from pipelines.apply.record import record
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import keep
from pipelines.monitoring.exporter import AutopilotCollector
from pipelines.monitoring.plans import PlanCollector, waiting_models
from pipelines.registry.review.decision import decide
from pipelines.registry.tracking import DATABASE, FOLDER, TRACKING_VARIABLE
from pipelines.store.digests import digest
from pipelines.store.plans import StoredPlan
from pipelines.store.workspace import Workspace, to_json
from workspaces.reviewed_job import JOB, waiting_job

CHECKED = datetime(2026, 3, 1, 11, tzinfo=UTC)
Samples = dict[tuple[str, str], float]


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


def store(place: Workspace, root: Path, version: int) -> Plan:
    plan = Plan.model_validate_json((root / f"tests/data/plans/{JOB}-v{version}.json").read_text())
    place.create_bytes(f"plans/{JOB}/v{version:06d}.json", to_json(StoredPlan(digest=digest(plan), plan=plan)))
    return plan


def applied(plan: Plan, outcome: Outcome) -> Applied:
    return Applied(
        job=JOB, version=plan.version, plan_digest=digest(plan), flink_url="http://flink:8081", flink_job="0",
        started_at="2026-03-01T10:00:00+00:00", seconds=1, method="rescale", placement="advice", outcome=outcome,
        reason="why", changes=(),
    )  # fmt: skip


def report(plan: Plan, drifted: bool) -> DriftReport:
    return DriftReport(
        job=JOB, version=1, created_at=CHECKED.isoformat(), plan_version=plan.version, run="r", source_rate=1.0,
        samples={}, drifted=drifted, reason="why", comparisons=(), busyness=(),
    )  # fmt: skip


def samples(place: Workspace) -> Samples:
    """By name, and by the value of a state set; all jobs are one."""
    found: Samples = {}
    for family in PlanCollector(place).collect():
        for one in family.samples:
            found[one.name, one.labels.get(family.name, "")] = one.value
    return found


def test_a_plan_alone(place: Workspace, root: Path) -> None:
    store(place, root, 1)
    found = samples(place)
    assert found["sluice_plan_version", ""] == 1
    assert found["sluice_plan_unreadable", ""] == 0
    assert found["sluice_model_registry_up", ""] == 1
    assert {name for name, _ in found} == {"sluice_plan_version", "sluice_plan_unreadable", "sluice_model_registry_up"}
    assert not place.exists(f"{FOLDER}/{DATABASE}")


@pytest.mark.parametrize("drifted", [True, False])
def test_drift_is_that_of_the_plan_in_force(place: Workspace, root: Path, drifted: bool) -> None:
    keep(place, report(store(place, root, 1), drifted))
    found = samples(place)
    assert found["sluice_plan_drifted", ""] == drifted
    assert found["sluice_plan_drift_checked_timestamp_seconds", ""] == CHECKED.timestamp()
    store(place, root, 2)
    assert ("sluice_plan_drifted", "") not in samples(place)


def test_the_newest_application_counts(place: Workspace, root: Path) -> None:
    plan = store(place, root, 1)
    record(place, applied(plan, "failed"))
    found = samples(place)
    assert (found["sluice_plan_apply_outcome", "failed"], found["sluice_plan_apply_outcome", "applied"]) == (1, 0)
    record(place, applied(plan, "applied"))
    found = samples(place)
    assert (found["sluice_plan_apply_outcome", "failed"], found["sluice_plan_apply_outcome", "applied"]) == (0, 1)
    store(place, root, 2)
    assert not any(name == "sluice_plan_apply_outcome" for name, _ in samples(place))


@pytest.mark.parametrize("versions", [(1,), (1, 2)])
def test_a_damaged_plan_is_said(place: Workspace, root: Path, versions: tuple[int, ...]) -> None:
    for version in versions:
        store(place, root, version)
    key = f"plans/{JOB}/v{versions[-1]:06d}.json"
    place.write_bytes(key, place.read_bytes(key)[:100])
    found = samples(place)
    assert found["sluice_plan_unreadable", ""] == 1
    assert (("sluice_plan_version", "") in found) == (len(versions) == 2)


@pytest.mark.slow
def test_a_model_waits_until_a_person_decides(
    root: Path, tmp_path: Path, make_tracked_workspace: Callable[[Path], Workspace]
) -> None:
    place = make_tracked_workspace(tmp_path / "tracked")
    waiting_job(root, tmp_path, place, root / "tests" / "data" / "streambed" / "search_q5.csv")
    collector = PlanCollector(place)
    assert _waiting(collector) == 1
    decide(place, JOB, 1, True, "ada", "it is the first")
    assert _waiting(collector) == 1  # MLflow is asked once a minute
    assert _waiting(PlanCollector(place)) == 0


def _waiting(collector: PlanCollector) -> float:
    (family,) = [one for one in collector.collect() if one.name == "sluice_models_waiting"]
    (sample,) = family.samples
    assert sample.labels == {"job_name": JOB}
    return sample.value


@pytest.mark.slow
def test_a_registry_that_is_away_is_said(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACKING_VARIABLE, "http://127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert waiting_models(place) is None
    assert samples(place)["sluice_model_registry_up", ""] == 0


def test_every_alert_names_what_is_exported(place: Workspace, root: Path) -> None:
    plan = store(place, root, 1)
    record(place, applied(plan, "failed"))
    keep(place, report(plan, True))
    now = datetime.now(UTC)
    store_autopilots(place, now, minutes=2)
    families: list[Metric] = [*PlanCollector(place).collect(), *AutopilotCollector(place, lambda: now).collect()]
    exported = {sample.name for family in families for sample in family.samples}
    exported |= {family.name for family in families if family.name == "sluice_models_waiting"}  # no model here
    groups = yaml.safe_load((root / "docker" / "prometheus" / "alerts.yml").read_text())["groups"]
    (rules,) = [group["rules"] for group in groups if group["name"] == "sluice"]
    named = {rule["alert"]: set(re.findall(r"\bsluice_\w+", re.sub(r"\{[^}]*\}", "", rule["expr"]))) for rule in rules}
    assert named.pop("SluiceMetricsDown") == set()  # of Prometheus itself
    assert all(named.values())
    assert {alert: names - exported for alert, names in named.items() if names - exported} == {}
