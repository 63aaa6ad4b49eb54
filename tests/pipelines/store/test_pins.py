"""A rollback pins its job: no new plan is made until a person releases it."""

from pathlib import Path

import pytest

from models.errors import InvalidInput
from models.plan.content import Plan, PlanContent
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.replan import replan
from pipelines.run import PipelineRun
from pipelines.store.digests import digest
from pipelines.store.pins import PinnedJob, PlanPin, pin_of, release_pin
from pipelines.store.plans import PlanStore, StoredPlan
from pipelines.store.workspace import Damaged, Workspace, to_json

DATA = Path(__file__).parents[2] / "data" / "plans"
JOB, AT = "nexmark-q5", "2026-01-02T00:00:00+00:00"


def content(version: int, rate: float | None = None) -> PlanContent:
    plan = Plan.model_validate_json((DATA / f"{JOB}-v{version}.json").read_text())
    fields = {name: getattr(plan, name) for name in PlanContent.model_fields}
    return PlanContent(**(fields | ({} if rate is None else {"reasons": (f"for {rate}",)})))


@pytest.fixture
def store(workspace: Workspace) -> PlanStore:
    store = PlanStore(workspace)
    for version in (1, 2):
        store.publish(content(version), AT)
    return store


def test_a_rollback_pins_the_job_to_its_new_version_and_says_who_when_and_why(
    store: PlanStore, workspace: Workspace
) -> None:
    assert pin_of(workspace, JOB) is None
    rolled = store.rollback(JOB, 1, AT, by="Ada", reason="lag grew")
    pin = pin_of(workspace, JOB)
    assert pin is not None
    assert (pin.version, pin.by, pin.pinned_at) == (rolled.version, "Ada", AT) == (3, "Ada", AT)
    assert pin.reason == rolled.reasons[0]
    assert pin.reason.startswith("rolled back from version 2 to version 1") and pin.reason.endswith(": lag grew")


def test_a_pinned_job_gets_no_other_plan_until_it_is_released(store: PlanStore, workspace: Workspace) -> None:
    rolled = store.rollback(JOB, 1, AT, by="Ada")
    says = (
        "pinned to version 3 of its plan by Ada since .*; no other plan is made until `sluice plans unpin nexmark-q5`"
    )
    with pytest.raises(PinnedJob, match=says):
        store.publish(content(2), AT)
    with pytest.raises(PinnedJob, match=says):
        replan(workspace, JOB, 3e6)
    with pytest.raises(PinnedJob, match=says):
        PipelineRun(PlanRequest(job=JOB, rate=2e6), workspace).start()
    assert store.versions(JOB) == [1, 2, 3]
    assert workspace.list("runs") == []

    released = release_pin(workspace, JOB)
    assert released is not None and released.version == rolled.version
    assert store.publish(content(2), AT).version == 4
    assert release_pin(workspace, JOB) is None


def test_another_rollback_moves_the_pin(store: PlanStore, workspace: Workspace) -> None:
    store.rollback(JOB, 1, AT, by="Ada")
    store.rollback(JOB, 2, AT, by="Grace")
    pin = pin_of(workspace, JOB)
    assert pin is not None and (pin.version, pin.by) == (4, "Grace")


@pytest.mark.parametrize("pinned_before", [False, True])
def test_a_rollback_that_another_version_overtakes_is_refused_and_leaves_the_pins_as_they_were(
    store: PlanStore, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, pinned_before: bool
) -> None:
    if pinned_before:
        store.rollback(JOB, 1, AT, by="Ada")
    newest, before = store.versions(JOB)[-1], pin_of(workspace, JOB)
    create = workspace.create_bytes

    def overtaken(key: str, content: bytes) -> None:
        """Another writer, which found the job unpinned, is faster."""
        monkeypatch.setattr(workspace, "create_bytes", create)
        other = store.get(JOB, newest).model_copy(update={"version": newest + 1})
        create(key, to_json(StoredPlan(digest=digest(other), plan=other)))
        create(key, content)

    monkeypatch.setattr(workspace, "create_bytes", overtaken)
    with pytest.raises(InvalidInput, match=f"version {newest + 1} .* was published after version {newest}; nothing is"):
        store.rollback(JOB, 1, AT, by="Grace", current=newest)
    assert pin_of(workspace, JOB) == before


def test_a_damaged_pin_still_pins(store: PlanStore, workspace: Workspace) -> None:
    store.rollback(JOB, 1, AT, by="Ada")
    workspace.write_bytes(f"pins/{JOB}.json", b"{")
    with pytest.raises(Damaged):
        store.publish(content(2), AT)
    assert release_pin(workspace, JOB) is None
    assert store.publish(content(2), AT).version == 4


def test_a_pin_says_all_it_holds() -> None:
    pin = PlanPin(job=JOB, version=3, by="Ada", reason="lag grew", pinned_at=AT)
    assert str(pin) == f"{JOB} is pinned to version 3 of its plan by Ada since {AT}: lag grew"
