"""Concurrent replans, a truncated plan, a tampered model: the plan in force is always complete and valid."""

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from threading import Barrier

import pytest

from models.plan.differences import difference
from pipelines.planning.replan import Replanned, replan
from pipelines.registry.artifact import MODEL_FILE, ChangedModel
from pipelines.registry.tracking import open_tracking
from pipelines.store.plans import PlanStore, report_key
from pipelines.store.workspace import Workspace

pytestmark = pytest.mark.slow
JOB = "nexmark-q5"


def at_once(workspace: Workspace, *rates: float) -> list[Replanned]:
    ready = Barrier(len(rates))

    def plan_for(rate: float) -> Replanned:
        ready.wait(60)
        return replan(workspace, JOB, rate)

    with ThreadPoolExecutor(len(rates)) as pool:
        return list(pool.map(plan_for, rates))


def folder(workspace: Workspace) -> Path:
    return workspace.local_folder()


@pytest.fixture
def store(planned_workspace: Workspace) -> PlanStore:
    return PlanStore(planned_workspace)


def test_two_replans_at_once_for_two_rates_make_two_versions(planned_workspace: Workspace, store: PlanStore) -> None:
    before = store.versions(JOB)
    made = at_once(planned_workspace, 1_510_000.0, 1_790_000.0)
    new = [version for version in store.versions(JOB) if version not in before]
    assert new == [before[-1] + 1, before[-1] + 2]
    assert sorted(one.plan.version for one in made) == new
    assert {store.get(JOB, version).target_rate for version in new} == {1_510_000.0, 1_790_000.0}
    for version in new:  # each says what changed from the version that really came before it
        assert store.get(JOB, version).difference == difference(store.get(JOB, version - 1), store.get(JOB, version))


def test_two_replans_at_once_for_one_rate_make_one_version(planned_workspace: Workspace, store: PlanStore) -> None:
    before = store.versions(JOB)
    made = at_once(planned_workspace, 1_300_000.0, 1_300_000.0)
    assert store.versions(JOB) == [*before, before[-1] + 1]
    assert {one.plan.version for one in made} == {before[-1] + 1}


def test_a_replan_goes_on_from_the_last_good_version_when_the_newest_was_cut_off(
    planned_workspace: Workspace, store: PlanStore, caplog: pytest.LogCaptureFixture
) -> None:
    replan(planned_workspace, JOB, 1_100_000.0)
    *_, good, newest = store.versions(JOB)
    file = folder(planned_workspace) / "plans" / JOB / f"v{newest:06d}.json"
    file.write_bytes(file.read_bytes()[:500])
    with caplog.at_level(logging.WARNING):
        made = replan(planned_workspace, JOB, 1_200_000.0)
    assert made.plan.version == newest + 1
    assert made.plan.difference == difference(store.get(JOB, good), made.plan)
    assert f"v{newest:06d}.json is damaged" in caplog.text
    assert f"version {good} of the plan of {JOB} is used instead" in caplog.text


@pytest.mark.parametrize(("step", "rate"), [("render", 1_410_000.0), ("open_tracking", 1_420_000.0)])
def test_a_version_whose_replan_was_killed_gets_its_report_from_another(
    planned_workspace: Workspace, store: PlanStore, monkeypatch: pytest.MonkeyPatch, step: str, rate: float
) -> None:
    """It is killed once the version is stored, before its report is, or before that is logged."""

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed, pytest.raises(KeyboardInterrupt):
        killed.setattr(f"pipelines.stages.publish.{step}", kill)
        replan(planned_workspace, JOB, rate)
    unfinished = store.current(JOB)
    assert unfinished.target_rate == rate
    began = datetime.fromisoformat(unfinished.created_at)
    again = replan(planned_workspace, JOB, rate)
    assert again == Replanned(unfinished, is_new=False)
    assert again.is_made_since(began), "a killed attempt of the same DAG run"
    assert not again.is_made_since(began + timedelta(milliseconds=1)), "another replan"
    assert b"<html" in planned_workspace.read_bytes(report_key(JOB, unfinished.version))
    client = open_tracking(planned_workspace).client
    logged = client.list_artifacts(client.get_model_version(JOB, "1").run_id, "plans")
    assert f"plans/v{unfinished.version:06d}.html" in {one.path for one in logged}
    monkeypatch.setattr("pipelines.stages.publish.render", kill)
    assert replan(planned_workspace, JOB, rate) == again, "with its report, nothing is done"


@pytest.fixture
def tampered_model(planned_workspace: Workspace) -> Iterator[Path]:
    """The champion's file with one byte changed; it is put right afterwards."""
    (file,) = folder(planned_workspace).rglob(f"mlflow/**/{MODEL_FILE}")
    content = file.read_bytes()
    file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    yield file
    file.write_bytes(content)


def test_a_tampered_model_is_refused_by_name_and_the_plan_in_force_stays(
    planned_workspace: Workspace, store: PlanStore, tampered_model: Path
) -> None:
    before = store.current(JOB)
    with pytest.raises(ChangedModel) as refused:
        replan(planned_workspace, JOB, 900_000.0)
    assert "models:/nexmark-q5/1 is not what was registered" in str(refused.value)
    assert "plan again to register a new one" in str(refused.value)
    assert store.current(JOB) == before
