"""The content of the pages, for two stored versions of a plan whose numbers are those of their files."""

from datetime import UTC, datetime

import pytest

from autopilots.records import decided, state_of
from models.errors import InvalidInput
from models.plan.content import Plan
from models.scaling.rate_band import RateChange, RateSample
from pipelines.apply.applied import Applied, Effect
from pipelines.apply.record import record
from pipelines.control.files import AutopilotFiles
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import drift_key
from pipelines.pages.comparison import compare
from pipelines.pages.detail import plan_detail, plan_pictures
from pipelines.pages.mlflow_pages import mlflow_pages
from pipelines.pages.overview import overview
from pipelines.pages.versions import history
from pipelines.rates.record import RateChangeEvent, keep_event
from pipelines.rates.status import keep_status
from pipelines.registry.review.pages import PAGES_VARIABLE
from pipelines.registry.tracking import TRACKING_VARIABLE
from pipelines.store.digests import digest
from pipelines.store.pictures import keep_pictures
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Missing, Workspace

JOB = "nexmark-q5"


def _tamper(workspace: Workspace, version: int) -> None:
    key = f"plans/{JOB}/v{version:06d}.json"
    workspace.write_bytes(key, workspace.read_bytes(key).replace(b'"headroom": 1.1', b'"headroom": 1.3'))


def _applied(plan: Plan, at: str, rate: float) -> Applied:
    effect = Effect(window_s=60, rate=rate, target_rate=plan.target_rate, vertices=())
    return Applied(
        job=JOB, version=plan.version, plan_digest=digest(plan), flink_url="http://flink:8081", flink_job="0",
        started_at=at, seconds=1, method="rescale", placement="advice", outcome="applied", reason="it runs", changes=(),
        effect=effect,
    )  # fmt: skip


def _event(at: datetime, rate: float) -> RateChangeEvent:
    change = RateChange(old_rate=8e5, new_rate=rate, low=5.6e5, high=8.8e5, samples=(RateSample(time_s=0, rate=rate),))
    return RateChangeEvent(job=JOB, plan_version=2, number=1, reported_at=at, origin="Prometheus", change=change)


def test_the_newest_intact_plan_of_a_job_is_its_current_one(workspace: Workspace, plans: tuple[Plan, Plan]) -> None:
    (row,) = overview(workspace).jobs
    assert (row.job, row.actual, row.faults) == (JOB, None, ())
    assert row.plan is not None
    assert (row.plan.version, row.plan.target_rate) == (2, plans[1].target_rate)
    _tamper(workspace, 2)
    (row,) = overview(workspace).jobs
    assert row.plan is not None
    assert (row.plan.version, row.plan.target_rate, row.plan.task_slots) == (1, 8e5, 32)
    assert len(row.faults) == 1 and "v000002.json was changed" in row.faults[0]
    _tamper(workspace, 1)
    (row,) = overview(workspace).jobs
    assert row.plan is None and len(row.faults) == 2


def test_the_rate_that_was_seen_last_is_the_actual_one(workspace: Workspace, plans: tuple[Plan, Plan]) -> None:
    record(workspace, _applied(plans[1], "2026-03-01T10:00:00+00:00", 7e5))
    record(workspace, _applied(plans[1], "2026-03-01T12:00:00+00:00", 7.5e5))
    (row,) = overview(workspace).jobs
    assert row.actual is not None
    assert (row.actual.rate, row.actual.seen_at.hour) == (7.5e5, 12)
    keep_event(workspace, _event(datetime(2026, 3, 1, 11, tzinfo=UTC), 9e5))
    assert overview(workspace).jobs[0].actual == row.actual
    record(workspace, _applied(plans[0], "2026-03-01T14:00:00+00:00", 1.0))  # of another version
    assert overview(workspace).jobs[0].actual == row.actual


def test_a_later_rate_change_is_the_actual_rate(workspace: Workspace, plans: tuple[Plan, Plan]) -> None:
    record(workspace, _applied(plans[1], "2026-03-01T10:00:00+00:00", 7e5))
    keep_event(workspace, _event(datetime(2026, 3, 1, 11, tzinfo=UTC), 9e5))
    actual = overview(workspace).jobs[0].actual
    assert actual is not None
    assert (actual.rate, actual.how) == (9e5, "when it left the band of version 2; read from Prometheus")


def _drift(at: str, drifted: bool) -> DriftReport:
    reason = (
        "bids: CPU time per record is 12 us (+20%), and 9 us to 11 us was expected" if drifted else "all lie within"
    )
    return DriftReport(
        job=JOB, version=1, created_at=at, plan_version=2, run="r", source_rate=6.5e5, samples={}, drifted=drifted,
        reason=reason, comparisons=(), busyness=(),
    )  # fmt: skip


def test_rates_are_listed_in_order_of_time_whatever_their_origin(
    workspace: Workspace, plans: tuple[Plan, Plan]
) -> None:
    workspace.write_bytes(drift_key(JOB, 1), b"{")  # an old report that is damaged hides nothing else
    workspace.write(drift_key(JOB, 2), _drift("2026-03-01T09:30:00+00:00", False).model_copy(update={"version": 2}))
    workspace.write(drift_key(JOB, 3), _drift("2026-03-01T11:30:00+00:00", False).model_copy(update={"version": 3}))
    record(workspace, _applied(plans[1], "2026-03-01T10:00:00+00:00", 7e5))
    for number, rate in enumerate((9e5, 9.5e5), start=1):
        event = _event(datetime(2026, 3, 1, 10 + number, tzinfo=UTC), rate)
        keep_event(workspace, event.model_copy(update={"number": number}))
    (row,) = overview(workspace).jobs
    assert [(point.seen_at.hour, point.rate) for point in row.rates] == [
        (9, 6.5e5), (10, 7e5), (11, 9e5), (11, 6.5e5), (12, 9.5e5),
    ]  # fmt: skip
    assert row.actual is not None and row.actual.rate == 9.5e5
    assert row.faults == ()


def test_what_was_read_once_is_shown_again_and_what_is_new_is_added(
    workspace: Workspace, plans: tuple[Plan, Plan]
) -> None:
    """Plans and records are kept between two pages, as long as their files are the same."""
    store, reports = PlanStore(workspace), ("2026-03-01T09:30:00+00:00", "2026-03-01T11:30:00+00:00")
    for number, at in enumerate(reports, start=1):
        workspace.write(drift_key(JOB, number), _drift(at, False).model_copy(update={"version": number}))
        for _ in range(2):
            (row,) = overview(workspace).jobs
            assert [point.seen_at.isoformat() for point in row.rates] == list(reports[:number])
    newest = store.versions(JOB)[-1]
    key = f"plans/{JOB}/v{newest:06d}.json"
    intact = workspace.read_bytes(key)
    workspace.write_bytes(key, intact.replace(b'"headroom": 1.1', b'"headroom": 1.2'))
    (row,) = overview(workspace).jobs
    assert row.plan is not None and row.plan.version == newest - 1
    assert "its digest does not match" in row.faults[0]
    workspace.write_bytes(key, intact)
    (row,) = overview(workspace).jobs
    assert row.plan is not None and (row.plan.version, row.faults) == (newest, ())


def test_the_lag_is_what_the_autopilot_saw_last(workspace: Workspace) -> None:
    assert overview(workspace).jobs[0].lag is None
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    newest = decided(1, now, JOB)
    AutopilotFiles(workspace, JOB).keep_state(state_of(newest, now, JOB))
    (row,) = overview(workspace).jobs
    assert row.lag is not None and row.actual is not None
    assert (row.lag.seconds, row.lag.records) == (newest.seen.lag_s, newest.seen.lag_records)
    assert (row.actual.rate, row.actual.how) == (newest.seen.arriving_rate, "by its autopilot")


def test_the_row_says_since_when_and_why_the_rate_is_not_followed(workspace: Workspace) -> None:
    began = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for state, unreadable in (("unreadable", True), ("held", False)):
        keep_status(workspace, JOB, state, "the token is missing", began)
        (row,) = overview(workspace).jobs
        assert row.unfollowed is not None
        assert (row.unfollowed.unreadable, row.unfollowed.reason) == (unreadable, "the token is missing")
        assert row.unfollowed.since == began
    for state in ("followed", "pinned"):  # a pin is shown by itself
        keep_status(workspace, JOB, state, "", began)
        assert overview(workspace).jobs[0].unfollowed is None


def test_drift_is_what_the_last_look_at_production_said(workspace: Workspace, plans: tuple[Plan, Plan]) -> None:
    assert overview(workspace).jobs[0].drift is None
    record(workspace, _applied(plans[1], "2026-03-01T10:00:00+00:00", 7e5))
    workspace.write(drift_key(JOB, 1), _drift("2026-03-01T11:00:00+00:00", True))
    (row,) = overview(workspace).jobs
    assert row.drift is not None and row.actual is not None
    assert (row.drift.drifted, row.drift.plan_version) == (True, 2) and "CPU time" in row.drift.reason
    assert row.actual.rate == 6.5e5
    workspace.write(drift_key(JOB, 2), _drift("2026-03-01T09:00:00+00:00", False).model_copy(update={"version": 2}))
    (row,) = overview(workspace).jobs
    assert row.drift is not None and row.actual is not None
    assert (row.drift.drifted, row.actual.rate) == (False, 7e5)
    workspace.write_bytes(drift_key(JOB, 3), b"{")
    (row,) = overview(workspace).jobs
    assert (row.drift, row.actual.rate) == (None, 7e5) and len(row.faults) == 1


def test_a_damaged_record_is_reported_and_hides_nothing_else(workspace: Workspace) -> None:
    workspace.write_bytes(f"plans/{JOB}/v000002-applied-000001.json", b'{"job":')
    (row,) = overview(workspace).jobs
    assert row.plan is not None and row.plan.version == 2 and row.actual is None
    assert "v000002-applied-000001.json is damaged" in row.faults[0]
    detail = plan_detail(workspace, JOB, 2)
    assert (detail.plan.version, detail.applied) == (2, ()) and detail.faults == row.faults
    assert sum(len(group.workers) for group in detail.workers) == len(detail.plan.placement) > len(detail.workers)


def test_the_history_names_what_is_damaged(workspace: Workspace) -> None:
    _tamper(workspace, 1)
    known = history(workspace, JOB)
    assert [row.version for row in known.versions] == [2, 1]
    assert known.intact == (2,)
    assert known.versions[1].damaged is not None and "v000001.json" in known.versions[1].damaged


def test_a_comparison_is_that_of_the_stored_plans(workspace: Workspace, plans: tuple[Plan, Plan]) -> None:
    forth, back = compare(workspace, JOB, 1, 2), compare(workspace, JOB, 2, 1)
    assert plans[1].difference is not None
    assert forth.difference == plans[1].difference
    assert back.difference.tasks_stopped == forth.difference.tasks_moved
    assert sum(max(0, change.after - change.before) for change in forth.placement) == forth.difference.tasks_moved
    assert sum(max(0, change.started) for change in forth.grouped) == forth.difference.tasks_moved


@pytest.mark.parametrize("job", ["no-such-job", "", "..", "../plans", "<script>", "a/b", "x" * 1000, ".hidden"])
def test_a_name_that_is_no_job_is_unknown(workspace: Workspace, job: str) -> None:
    with pytest.raises(InvalidInput, match="There is no plan of a job named") as error:
        history(workspace, job)
    assert len(str(error.value)) < 200


def test_a_version_that_is_not_there_is_unknown(workspace: Workspace) -> None:
    for version in (0, -1, 3, 10**30):
        with pytest.raises(InvalidInput, match="the newest is 2"):
            plan_detail(workspace, JOB, version)
    _tamper(workspace, 1)
    with pytest.raises(Damaged, match=r"v000001\.json"):
        plan_detail(workspace, JOB, 1)


def test_a_rollback_has_the_pictures_of_what_it_deploys_again(workspace: Workspace, plans: tuple[Plan, Plan]) -> None:
    with pytest.raises(Missing, match="No pictures are stored"):
        plan_pictures(workspace, JOB, 2)
    for plan in plans:
        keep_pictures(workspace, plan, {})
    assert plan_detail(workspace, JOB, 2).pictures_of == 2
    PlanStore(workspace).rollback(JOB, 1, "2026-03-02T00:00:00+00:00", by="Ada")
    detail = plan_detail(workspace, JOB, 3)
    assert (detail.plan.version, detail.pictures_of, detail.newest) == (3, 1, 3)
    assert plan_pictures(workspace, JOB, 3).figures == {}


def test_mlflow_is_linked_only_where_a_browser_can_open_it(
    workspace: Workspace, plans: tuple[Plan, Plan], monkeypatch: pytest.MonkeyPatch
) -> None:
    lineage = plans[0].lineage.model_copy(update={"model_uri": f"models:/{JOB}/3"})
    plan = plans[0].model_copy(update={"lineage": lineage})
    monkeypatch.delenv(PAGES_VARIABLE, raising=False)
    for store in ("", "sqlite:////tmp/mlflow.db", "databricks", "javascript:alert(1)"):
        monkeypatch.setenv(TRACKING_VARIABLE, store)
        assert mlflow_pages(workspace, plan) is None
    monkeypatch.setenv(TRACKING_VARIABLE, "http://user:secret@mlflow:5000/")
    pages = mlflow_pages(workspace, plan)
    assert pages is not None
    assert (pages.model, pages.run) == (f"http://mlflow:5000/#/models/{JOB}/versions/3", None)
    monkeypatch.setenv(PAGES_VARIABLE, "https://mlflow.example/")
    pages = mlflow_pages(workspace, plan)
    assert pages is not None and pages.model == f"https://mlflow.example/#/models/{JOB}/versions/3"
    assert (
        mlflow_pages(workspace, plans[0].model_copy(update={"lineage": lineage.model_copy(update={"model_uri": None})}))
        is None
    )
