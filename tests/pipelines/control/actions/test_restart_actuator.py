"""Restarts through a savepoint, where answers are lost, and Flink is slower than the time limits.

The job has 2 tasks and gets 3. A time limit is 10 s, the shortest for the former tasks 60 s.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from autopilots.restarts import FORMER, NEW, restart_intent
from flink.restarted import JOB, VERTEX, RestartedFlink
from flink.steered import SimulatedClock
from flink_client.jobs.restart import Restart, RestartProgram
from flink_client.rest.client import FlinkRest
from models.errors import SluiceError
from pipelines.control.actions.carrying import Carried, Carrying
from pipelines.control.actions.deployment import open_api
from pipelines.control.actions.hands import Hands
from pipelines.control.actions.intents import SAVEPOINT, Intent, IntentJournal, IntentStep
from pipelines.control.actions.restart_actuator import RestartActuator
from pipelines.control.keeping.lease import LeaseLost, LeaseSeeker
from pipelines.control.request import AutopilotRequest, Clocks
from pipelines.store.workspace import Workspace


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def flink(clock: SimulatedClock) -> Iterator[RestartedFlink]:
    made = RestartedFlink(clock)
    with made.server:
        yield made


@pytest.fixture
def intent() -> Intent:
    return restart_intent(JOB, {VERTEX: "count"}, {VERTEX: 2}, {VERTEX: 3})


class Restarting:
    """Carries out an intent, as each process does that holds the lease."""

    def __init__(self, flink: RestartedFlink, clock: SimulatedClock, place: Path) -> None:
        self.flink, self.clock, self.journal = flink, clock, IntentJournal(Workspace(place / "workspace"), "p")
        jar = place / "program.jar"
        jar.write_bytes(b"PK")
        self.restart = Restart(RestartProgram(jar=str(jar), entry_class="P"), "file:///savepoints")
        self.lost_at_s = float("inf")

    def beat(self) -> None:
        if self.clock() >= self.lost_at_s:
            raise LeaseLost("another autopilot acts on p")

    def carry_out(self, intent: Intent) -> Carried:
        with FlinkRest(self.flink.server.url, timeout_s=2.0, patience_s=0.0) as rest:
            carrying = Carrying(rest, self.beat, self.clock, self.clock.sleep)
            return RestartActuator(rest, self.journal, self.restart, carrying, timeout_s=10.0).carry_out(intent)


@pytest.fixture
def restarting(flink: RestartedFlink, clock: SimulatedClock, tmp_path: Path) -> Restarting:
    return Restarting(flink, clock, tmp_path)


def test_a_restart_leaves_one_job_and_no_jar(flink: RestartedFlink, restarting: Restarting, intent: Intent) -> None:
    carried = restarting.carry_out(intent)
    assert (carried.done, carried.flink_job) == ("rescaled", NEW)
    assert flink.running == [(NEW, 3)] and flink.jars == []


@pytest.mark.parametrize("fault", ["slow", "lost"])
def test_a_savepoint_that_is_not_complete_in_time_is_waited_for_since_it_ends_the_job(
    flink: RestartedFlink, restarting: Restarting, intent: Intent, fault: str
) -> None:
    flink.savepoint_s, began_s = 25.0, restarting.clock()
    flink.loses_answer_to = "savepoints" if fault == "lost" else ""
    for _ in range(2):
        with pytest.raises(SluiceError, match=r"does not answer|is not complete after 10 s"):
            restarting.carry_out(intent)
        assert flink.running == [(JOB, 2)]
    restarting.clock.sleep(began_s + 26.0 - restarting.clock())
    assert flink.running == [], "the savepoint has ended the job, and no program was started since"
    assert restarting.carry_out(intent).done == "rescaled"
    assert flink.running == [(NEW, 3)] and len(flink.asked) == 1


def test_a_savepoint_that_flink_cannot_take_leaves_the_job_as_it_is(
    flink: RestartedFlink, restarting: Restarting, intent: Intent
) -> None:
    flink.savepoint_fails = True
    carried = restarting.carry_out(intent)
    assert carried.done == "refused" and "no space" in str(carried.why) and "the job runs on" in str(carried.why)
    assert flink.running == [(JOB, 2)]


def test_a_program_that_is_slow_to_start_is_started_once_although_its_answer_was_lost(
    flink: RestartedFlink, restarting: Restarting, intent: Intent
) -> None:
    flink.main_s, flink.loses_answer_to = 6.0, "run"
    assert restarting.carry_out(intent).done == "rescaled"
    assert flink.running == [(NEW, 3)] and flink.runs == [(NEW, 3)]


def test_a_program_that_starts_after_it_was_given_up_does_not_run_beside_the_former_one(
    flink: RestartedFlink, restarting: Restarting, intent: Intent
) -> None:
    flink.main_s, flink.loses_answer_to = 12.0, "run"
    carried = restarting.carry_out(intent)
    assert carried.done == "rolled-back" and "Flink has not started the program after 10 s" in str(carried.why)
    assert flink.runs == [(NEW, 3), (FORMER, 2)]
    assert flink.running == [(FORMER, 2)]


def test_a_program_that_flink_refuses_is_taken_back(
    flink: RestartedFlink, restarting: Restarting, intent: Intent
) -> None:
    flink.refuses_tasks = 3
    carried = restarting.carry_out(intent)
    assert carried.done == "rolled-back" and "the program is refused" in str(carried.why)
    assert flink.running == [(FORMER, 2)] and flink.jars == []


def test_who_has_lost_the_lease_decides_nothing(
    flink: RestartedFlink, restarting: Restarting, intent: Intent, tmp_path: Path
) -> None:
    flink.savepoint_s, restarting.lost_at_s = 8.0, restarting.clock() + 5.0
    with pytest.raises(LeaseLost):
        restarting.carry_out(intent)
    other = Restarting(flink, restarting.clock, tmp_path)
    assert other.carry_out(intent).done == "rescaled"
    assert flink.running == [(NEW, 3)] and len(flink.asked) == 1


def test_a_job_that_has_ended_by_itself_is_not_started_again(
    flink: RestartedFlink, restarting: Restarting, intent: Intent
) -> None:
    flink.jobs[JOB].state = "FAILED"
    carried = restarting.carry_out(intent)
    assert carried.done == "failed" and "has ended without a savepoint of this action" in str(carried.why)
    assert flink.running == [] and flink.runs == []


@pytest.mark.parametrize("taken", [False, True])
def test_who_does_not_know_the_program_says_where_the_savepoint_of_a_job_that_has_ended_is(
    flink: RestartedFlink, clock: SimulatedClock, intent: Intent, tmp_path: Path, taken: bool
) -> None:
    """The first process was started with the program, and the second one without."""
    workspace = Workspace(tmp_path / "workspace")
    lease = LeaseSeeker(workspace, "p", clock, "second").attempt()
    assert lease is not None
    journal = IntentJournal(workspace, "p")
    if taken:
        journal.mark(intent.number, SAVEPOINT, IntentStep(at=intent.intended_at, said="file:///savepoints/s-1"))
    clocks = Clocks(clock, clock.sleep, lambda: datetime.now(UTC))
    with FlinkRest(flink.server.url, timeout_s=2.0, patience_s=0.0) as rest:
        request = AutopilotRequest("p", rest.url, JOB, "ds2")
        carried = Hands(rest, request, journal, lease, clocks, lambda: None, open_api).act(intent, resumed=True)
    assert carried.done == ("failed" if taken else "refused") and "give --program" in str(carried.why)
    assert ("its savepoint is file:///savepoints/s-1" in str(carried.why)) == taken
