"""Faults of Flink, of the broker and of the job under an autopilot: nothing is lost, doubled or done blindly."""

from collections.abc import Callable, Collection

import pytest

from autopilots.flight import ACTIONS, Flight, actions, held, step_up
from flink.steered import SteeredJob
from flink_client.metrics.partitions import Place
from models.errors import SluiceError


def stop_counters(flight: Flight) -> None:
    flight.job.counting = False


def stop_answers(flight: Flight) -> None:
    flight.flink.answers = False


def fail_checkpoints(flight: Flight) -> None:
    flight.job.failed_checkpoints = 3


def hang_a_checkpoint(flight: Flight) -> None:
    flight.job.hung_checkpoint, flight.job.failed_checkpoints = 9, 1


def lose_the_lag(flight: Flight) -> None:
    flight.job.reports_lag = False


@pytest.mark.parametrize(
    ("fault", "limit"),
    [
        (stop_counters, "stale"),
        (stop_answers, "stale"),
        (fail_checkpoints, "checkpoints"),
        (hang_a_checkpoint, "checkpoints"),
    ],
)
def test_nothing_is_done_while_the_job_is_not_seen_or_not_well(
    flight: Flight, fault: Callable[[Flight], None], limit: str
) -> None:
    autopilot = flight.autopilot(checkpoint_s=60.0)
    flight.fly(autopilot, 90.0)
    fault(flight)
    flight.fly(autopilot, 120.0)
    flight.job.rate = lambda t: 2600.0
    stored = flight.fly(autopilot, 180.0)
    assert flight.flink.changes == []
    assert limit in held(stored)
    # It acts again once the fault is over.
    flight.job.counting = flight.flink.answers = True
    flight.job.failed_checkpoints, flight.job.hung_checkpoint = 0, None
    assert [done for done, _, _ in actions(flight.fly(autopilot, 120.0))] == ["rescaled"]


def test_a_policy_that_needs_the_lag_waits_where_the_source_reports_none(flight: Flight) -> None:
    lose_the_lag(flight)
    stored = flight.fly(flight.autopilot(policy="sluice"), 90.0)
    assert held(stored) == {"restarting", "partial"}
    assert "lag_records" in stored[-1].reason


def test_a_request_whose_answer_never_comes_is_not_sent_twice(flight: Flight) -> None:
    """Flink has taken the request, and hangs: the next round finds what was asked for, and only verifies it."""
    flight.job.rate = step_up
    hung: list[str] = []

    def hang(method: str, path: str) -> None:
        if method == "PUT" and not hung:
            hung.append(path)
            flight.flink.hang_s = 0.8

    flight.flink.before = hang
    autopilot = flight.autopilot()
    stored = flight.fly(autopilot, 75.0)
    flight.flink.hang_s = 0.0
    stored += flight.fly(autopilot, 100.0)
    assert hung and actions(stored) == [("rescaled", 4, 7)]
    (taken,) = [d.rescale for d in stored if d.done == "rescaled"]
    assert taken is not None and taken.resumed
    assert flight.job.attempt == 1
    assert any("ReadTimeout" in d.reason for d in stored if d.held == "stale")
    assert list(autopilot.files.decisions()) == stored, (
        "the record of the fault does not take the number of the action's"
    )


def test_while_the_broker_is_away_the_lag_is_unknown_and_nothing_is_done(flight: Flight) -> None:
    away: list[bool] = []

    def ends(places: Collection[Place]) -> dict[Place, float]:
        if away:
            raise SluiceError("no broker answers")
        return dict.fromkeys(places, flight.job.log_end())

    flight.job.partitioned = True
    autopilot = flight.autopilot(log_ends=ends)
    seen = flight.fly(autopilot, 60.0)[-1].seen
    assert seen.lag_records == pytest.approx(0.0, abs=1.0)
    away.append(True)
    flight.job.rate = lambda t: 2600.0
    stored = flight.fly(autopilot, 120.0)
    assert flight.flink.changes == [] and held(stored) == {"partial"}
    assert "what waits is unknown: no broker answers" in stored[-1].reason
    away.clear()
    assert [done for done, _, _ in actions(flight.fly(autopilot, 60.0))] == ["rescaled"]


@pytest.mark.parametrize(("slots", "taken_back"), [(16, True), (8, False)], ids=["by itself", "with slots lost"])
def test_a_job_that_fails_again_and_again_after_a_rescale_is_taken_back(
    flight: Flight, slots: int, taken_back: bool
) -> None:
    flight.job.rate = step_up
    autopilot = flight.autopilot(judge_s=120.0, back_off_s=600.0)
    assert actions(flight.fly(autopilot, 75.0)) == [("rescaled", 4, 7)]
    flight.job.slots = slots
    stored = []
    for _ in range(3):
        flight.job.restart()
        stored += flight.fly(autopilot, 10.0)
    assert actions(stored) == ([("rolled-back", 7, 4)] if taken_back else [])


def test_restarts_of_the_job_are_waited_for(flight: Flight) -> None:
    autopilot = flight.autopilot()
    flight.fly(autopilot, 60.0)
    for _ in range(10):
        flight.job.restart()
        stored = flight.fly(autopilot, 10.0)
        assert actions(stored) == []
    assert actions(flight.fly(autopilot, 60.0)) == []


def test_a_job_that_a_new_jobmanager_does_not_know_is_found_by_its_name(flight: Flight) -> None:
    """It was submitted again after the JobManager had lost its state."""
    autopilot = flight.autopilot()
    flight.fly(autopilot, 30.0)
    job = flight.flink.jobs.pop(flight.job.id)
    assert held(flight.fly(autopilot, 60.0)) == {"stale"}
    job.id = "2" * 32
    flight.flink.jobs[job.id] = job
    job.restart()
    job.rate = lambda t: 2600.0
    stored = flight.fly(autopilot, 90.0)
    assert actions(stored) == [("rescaled", 4, 7)] and stored[-1].flink_job == job.id


def test_an_action_on_a_job_that_has_ended_since_is_given_up(flight: Flight) -> None:
    """The rescale made it fail, and it is submitted again."""
    flight.job.rate = step_up
    failed = flight.job
    flight.flink.before = lambda method, path: setattr(failed, "state", "FAILED") if method == "PUT" else None
    autopilot = flight.autopilot()
    stored = flight.fly(autopilot, 90.0)
    assert actions(stored) == [("failed", 4, 7)]
    assert any("the job has ended" in d.reason for d in stored if d.done == "failed")
    again = SteeredJob(flight.clock, "2" * 32, rate=lambda t: 1000.0)
    flight.flink.jobs = {again.id: again}
    again.restart()
    assert held(flight.fly(autopilot, 60.0)) <= {"restarting", "back-off"}, "nothing is left to be done"


def test_a_rescale_is_judged_by_the_next_process_too(flight: Flight) -> None:
    """Quiet rounds after the rescale have records of their own."""
    flight.job.rate, flight.job.breaks_above = step_up, 6
    first = flight.autopilot(judge_s=40.0, least_between_s=60.0)
    stored = flight.fly(first, 95.0)
    assert actions(stored) == [("rescaled", 4, 7)] and stored[-1].done not in ACTIONS
    first.close()
    assert actions(flight.fly(flight.autopilot(judge_s=40.0, least_between_s=60.0), 60.0)) == [("rolled-back", 7, 4)]


def test_a_job_that_fails_once_after_a_rescale_keeps_its_tasks(flight: Flight) -> None:
    """The rescale's own restart is none by itself."""
    flight.job.rate = step_up
    autopilot = flight.autopilot(judge_s=120.0)
    assert actions(flight.fly(autopilot, 90.0)) == [("rescaled", 4, 7)]
    flight.job.restart()
    assert actions(flight.fly(autopilot, 60.0)) == []
