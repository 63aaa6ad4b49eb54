"""The autopilot of a job by its file, on a simulated job whose rate triples: dry run, permission, acting, and changed rules."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from autopilots.flight import BEGIN, Flight
from flink.steered import COUNT
from on_kubernetes.server import PLANNER
from on_kubernetes.steered_operator import REFERENCE, TASKS, SteeredOperator
from pipelines.control.files import AutopilotFiles
from pipelines.control.record import PolicyOutlook
from pipelines.following.jobs import job_file
from pipelines.inputs.job_files import operations_of
from pipelines.inputs.operations.autopiloting import Autopiloting
from pipelines.piloting.events import PilotEvent, budget_event
from pipelines.piloting.permission import (
    AutopilotPermission,
    begin_question,
    keep_permission,
    permission_of,
    rules_digest,
)
from pipelines.piloting.pilot import RETRY_S, JobPilot, piloted_jobs

Says = Callable[..., Path]


def _pilot(flight: Flight) -> JobPilot:
    return JobPilot(flight.workspace, "clicks", clock=flight.clock, sleep=flight.clock.sleep, now=flight.now)


def _poll(flight: Flight, pilot: JobPilot, seconds: float) -> list[PilotEvent]:
    """What it reports in so much time."""
    found, until = [], flight.clock() + seconds
    while flight.clock() < until:
        if (event := pilot.poll()) is not None:
            found.append(event)
        flight.clock.sleep(max(pilot.interval_s, 0.1))
    return found


def _rules(flight: Flight) -> Autopiloting:
    rules = operations_of(job_file(flight.workspace, "clicks")).autopilot
    assert rules is not None
    return rules


def _answer(flight: Flight, granted: bool) -> None:
    digest = rules_digest(_rules(flight))
    answer = AutopilotPermission(job="clicks", rules=digest, granted=granted, by="ada", answered_at=BEGIN)
    keep_permission(flight.workspace, answer)


def test_jobs_whose_file_asks_for_it_have_an_autopilot(flight: Flight, says: Says) -> None:
    says()
    says("orders", operations={})
    says("wrong").write_text("name: [")
    assert piloted_jobs(flight.workspace) == ["clicks"]


def test_alone_it_rescales_and_reports_it(flight: Flight, says: Says) -> None:
    says(mode="alone")
    pilot = _pilot(flight)
    (event, *_) = _poll(flight, pilot, 150)
    pilot.close()
    assert (event.kind, event.policy, event.before["count"]) == ("rescaled", "ds2", 4)
    # The interval has the step in it, so fewer than the 8 of 3,000 records/s at 400 a task.
    assert event.after["count"] == 7
    assert flight.job.puts


def test_the_flinkdeployment_of_its_file_is_changed(
    flight: Flight, says: Says, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    operator = SteeredOperator(flight.job, flight.clock)
    monkeypatch.setenv("KUBECONFIG", str(operator.kubeconfig(tmp_path, PLANNER)))
    says(mode="alone", kubernetes=REFERENCE, context="test")
    with operator.server:
        pilot = _pilot(flight)
        (event, *_) = _poll(flight, pilot, 90)
        pilot.close()
    assert event.kind == "rescaled" and operator.overrides == {**TASKS, COUNT: event.after["count"]}
    says(context="test")
    pilot = _pilot(flight)
    assert _poll(flight, pilot, 1) == []
    assert "'context' and 'through' are for a FlinkDeployment" in caplog.text


def test_a_permission_without_a_flinkdeployment_is_not_one_with_it() -> None:
    plain = Autopiloting(flink="http://f:8081", policy="ds2", settings={"policy_interval_s": 10.0})
    # As it was before there was 'kubernetes', so that permissions from then hold.
    assert rules_digest(plain) == "e4cab4d384e6d506108954064d3bf66e7ec8d979bdfeceddd869688c0f0fc6eb"
    assert rules_digest(plain.model_copy(update={"kubernetes": REFERENCE})) != rules_digest(plain)


def test_a_dry_run_changes_nothing_and_reports_nothing(flight: Flight, says: Says) -> None:
    says()
    pilot = _pilot(flight)
    assert _poll(flight, pilot, 150) == []
    pilot.close()
    assert flight.job.puts == []
    assert any(one.done == "dry-run" for one in AutopilotFiles(flight.workspace, "clicks").decisions())


def test_it_asks_once_and_acts_only_after_a_permission_for_its_rules(flight: Flight, says: Says) -> None:
    says(mode="approved")
    pilot = _pilot(flight)
    (event,) = _poll(flight, pilot, 150)
    assert event.kind == "permission-needed" and event.after["count"] == 7
    assert event.rules == rules_digest(_rules(flight))
    assert flight.job.puts == []
    _answer(flight, granted=False)
    assert _poll(flight, pilot, 60) == [] and flight.job.puts == []
    _answer(flight, granted=True)
    assert "rescaled" in [one.kind for one in _poll(flight, pilot, 90)]
    puts = len(flight.job.puts)
    says(mode="approved", limits={"settle_s": 5.0, "least_between_s": 30.0, "most_tasks": 99})
    assert permission_of(flight.workspace, "clicks", _rules(flight)) is None
    flight.job.rate = lambda t: 5000.0
    assert [one.kind for one in _poll(flight, pilot, 90)] == ["permission-needed"]
    pilot.close()
    assert len(flight.job.puts) == puts


def test_an_answer_holds_again_when_the_rules_are_as_they_were(flight: Flight, says: Says) -> None:
    says(mode="approved")
    _answer(flight, granted=True)
    says(mode="approved", policy="sluice", settings={})
    _answer(flight, granted=False)
    says(mode="approved")
    found = permission_of(flight.workspace, "clicks", _rules(flight))
    assert found is not None and found.granted
    pilot = _pilot(flight)
    assert "rescaled" in [one.kind for one in _poll(flight, pilot, 150)]
    pilot.close()


def test_a_permission_from_when_a_job_had_only_one_still_holds(flight: Flight, says: Says) -> None:
    says(mode="approved")
    answer = AutopilotPermission(
        job="clicks", rules=rules_digest(_rules(flight)), granted=True, by="ada", answered_at=BEGIN
    )
    flight.workspace.write("autopilots/clicks/permission.json", answer)
    assert permission_of(flight.workspace, "clicks", _rules(flight)) == answer
    says(mode="approved", policy="sluice", settings={})
    assert permission_of(flight.workspace, "clicks", _rules(flight)) is None


def test_a_question_that_no_answer_came_of_is_asked_again(flight: Flight, says: Says) -> None:
    """As when the process was killed between recording the question and sending its event."""
    says(mode="approved", approval_s=600.0)
    rules = _rules(flight)

    def asks(after_s: float) -> bool:
        return begin_question(flight.workspace, "clicks", rules, BEGIN + timedelta(seconds=after_s))

    assert [asks(0.0), asks(601.0), asks(600.0 + 3601.0), asks(600.0 + 3602.0)] == [True, False, True, False]
    _answer(flight, granted=False)
    assert not asks(10 * 86400.0)


def test_wrong_rules_are_logged_once_and_tried_again(
    flight: Flight, says: Says, caplog: pytest.LogCaptureFixture
) -> None:
    says(policy="none-such")
    pilot = _pilot(flight)
    assert _poll(flight, pilot, 3 * RETRY_S) == []
    assert sum("there is no policy 'none-such'" in said for said in caplog.messages) == 1
    says(mode="alone")
    assert _poll(flight, pilot, 200)
    pilot.close()


def test_a_second_one_waits_until_the_first_has_ended(flight: Flight, says: Says) -> None:
    says()
    first, second = _pilot(flight), _pilot(flight)
    _poll(flight, first, 20)
    fence = AutopilotFiles(flight.workspace, "clicks").state()
    _poll(flight, second, 5)
    assert AutopilotFiles(flight.workspace, "clicks").state() == fence
    first.close()
    _poll(flight, second, 20)
    after = AutopilotFiles(flight.workspace, "clicks").state()
    second.close()
    assert fence is not None and after is not None and after.fence == fence.fence + 1


def test_a_spent_lateness_budget_is_reported_once_a_day(flight: Flight, says: Says) -> None:
    says()
    pilot = _pilot(flight)
    _poll(flight, pilot, 60)
    pilot.close()
    one, *_ = AutopilotFiles(flight.workspace, "clicks").decisions()

    def late(share: float, allowed: float, day: int = 0) -> PilotEvent | None:
        outlook = PolicyOutlook(horizon_s=60.0, low=1.0, high=2.0, late_share=share, late_allowed=allowed)
        when = one.decided_at + timedelta(days=day)
        return budget_event(flight.workspace, one.model_copy(update={"outlook": outlook, "decided_at": when}))

    assert late(0.009, 0.01) is None and late(0.5, 0.0) is None
    event = late(0.02, 0.01)
    assert event is not None and not event.did_harm
    assert (event.kind, event.reason) == ("budget-spent", "200% of the records that may be late were late")
    assert late(0.03, 0.01) is None
    assert late(0.03, 0.01, day=1) is not None
