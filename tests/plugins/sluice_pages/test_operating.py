"""The page on which a job is changed: what it shows beforehand, and a rollback from it."""

import httpx
import pytest

from pipelines.apply.applied import Applied, ProposedReturn
from pipelines.apply.record import record
from pipelines.store.pins import pin_of, release_pin
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from workspaces.plan_pages import JOB, Server

pytestmark = pytest.mark.slow

AS_BROWSER = {"Accept": "text/html"}


def test_a_reader_sees_the_state_and_no_buttons(reader: httpx.Client) -> None:
    text = reader.get(f"/jobs/{JOB}/operate?version=1", headers=AS_BROWSER).text
    assert "You may look at this only" in text and 'method="post"' not in text
    assert "From version 2 to what version 1 deploys" in text
    assert reader.get(f"/jobs/{JOB}/operate.json?rate=2000000").status_code == 403, "a preview takes a processor"


def test_a_replan_is_shown_before_it_is_made(server: Server, planned: Workspace) -> None:
    store = PlanStore(planned)
    before, current = store.versions(JOB), store.current(JOB)
    with server.client(server.token("planner")) as client:
        shown = client.get(f"/sluice/jobs/{JOB}/operate.json?rate=400000").raise_for_status().json()["preview"]
        assert (shown["why_not"], shown["from_version"]) == (None, current.version)
        assert shown["changes"]["task_slots_before"] == current.task_slots > shown["changes"]["task_slots_after"]
        assert shown["predicted_mst"]["value"] >= 4e5
        too_much = client.get(f"/sluice/jobs/{JOB}/operate?rate=1e14", headers=AS_BROWSER).text
        assert "There is no plan for 100,000,000,000,000 records/s" in too_much and "Replan for" not in too_much
        for rate in ("0", "-1", "nan", "x"):
            assert client.get(f"/sluice/jobs/{JOB}/operate?rate={rate}").status_code == 404
    assert store.versions(JOB) == before


def test_a_job_whose_file_allows_no_applying_says_so(server: Server) -> None:
    with server.client(server.token("planner")) as client:
        outlook = client.get(f"/sluice/jobs/{JOB}/operate.json").json()["operating"]["outlook"]
    assert "operations.apply.mode" in outlook["why_not"] and (outlook["runs_now"], outlook["changes"]) == (None, None)


def test_a_merged_plan_that_failed_is_flagged_with_the_branch_that_returns_from_it(
    reader: httpx.Client, planned: Workspace
) -> None:
    branch = "sluice/x-1-return-0123abcd"
    applied = Applied(
        job=JOB, version=1, plan_digest="0", flink_url="http://flink:8081", flink_job="0",
        started_at="2026-03-01T10:00:00+00:00", seconds=1, method="merge", placement="advice", outcome="failed",
        reason=f"the plan made it worse; merge the branch {branch} of /git/x into main to return to what it had before",
        changes=(), proposed_return=ProposedReturn(branch=branch, commit="1" * 40, reverts="2" * 40),
    )  # fmt: skip
    key = record(planned, applied).rpartition("/")[2]
    try:
        shown = reader.get(f"/jobs/{JOB}/operate", headers=AS_BROWSER).text
        assert f"merge the branch {branch} of /git/x into main" in shown and '<span class="flag">failed</span>' in shown
        assert f"merge the branch {branch} of" in reader.get(f"/jobs/{JOB}/versions/1", headers=AS_BROWSER).text
        (known,) = reader.get(f"/jobs/{JOB}/operate.json").json()["operating"]["applied"]
        assert known["proposed_return"]["branch"] == branch
    finally:
        planned.delete(f"plans/{JOB}/{key}")  # other tests know none


def test_a_rollback_makes_what_was_shown(server: Server, planned: Workspace) -> None:
    store = PlanStore(planned)
    newest = store.versions(JOB)[-1]
    with server.client(server.token("planner")) as client:
        shown = client.get(f"/sluice/jobs/{JOB}/operate.json?version=1").json()["rollback"]["difference"]
        form = {"current": str(newest), "version": "1", "reason": "the lag grew"}
        try:
            assert client.post(f"/sluice/jobs/{JOB}/roll-back", data=form).status_code == 303
            plan = store.current(JOB)
            assert plan.difference is not None and plan.difference.model_dump(mode="json") == shown
            assert (plan.version, plan.lineage.trigger) == (newest + 1, "rollback") and "the lag grew" in plan.reasons[
                0
            ]
            pin = pin_of(planned, JOB)
            assert pin is not None and (pin.version, pin.by) == (newest + 1, "planner")
            assert client.post(f"/sluice/jobs/{JOB}/roll-back", data=form).status_code == 409, "sent twice"
        finally:
            release_pin(planned, JOB)
            planned.delete(f"plans/{JOB}/v{newest + 1:06d}.json")  # other tests know two versions
    assert store.versions(JOB) == list(range(1, newest + 1))
