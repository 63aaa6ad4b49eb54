"""An autopilot that acts on a FlinkDeployment: the operator, or somebody else, does what it likes meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest

from autopilots.flight import ACTIONS, Flight
from flink.steered import COUNT, SINK, SOURCE
from on_kubernetes.deployed_resource import OVERRIDES
from on_kubernetes.operators_verdict import verdicts
from on_kubernetes.steered_operator import TASKS, SteeredOperator
from pipelines.control.autopilot import Autopilot
from pipelines.control.record import AutopilotDecision

Made = Callable[..., Autopilot]


def acted(stored: list[AutopilotDecision]) -> list[AutopilotDecision]:
    return [d for d in stored if d.done in ACTIONS]


def test_a_rescale_goes_into_the_resource_alone_and_is_verified_on_flink(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    before = operator.resource["spec"]
    (taken,) = acted(flight.fly(autopilot(), 60.0))
    assert taken.done == "rescaled" and taken.rescale is not None and taken.rescale.method == "resource"
    assert operator.writes == [TASKS] and flight.job.tasks == TASKS
    configuration = before["flinkConfiguration"] | {OVERRIDES: f"{COUNT}:7,{SOURCE}:1,{SINK}:1"}
    assert operator.resource["spec"] == before | {"flinkConfiguration": configuration}, "nothing else has changed"
    # Flink is asked after 1.5 s by the operator, and runs after 1 s more; that it is called stable is no part of it.
    assert taken.rescale.seconds == pytest.approx(2.5, abs=1.2)
    assert taken.rescale.downtime_s == pytest.approx(1.0, abs=0.4)
    assert flight.flink.changes == [], "Flink is changed by the operator"
    assert acted(flight.fly(autopilot(), 60.0)) == []


def test_what_does_not_come_about_in_time_is_taken_back_in_the_resource_and_counted(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    flight.job.slots = 8
    real = flight.job.require
    flight.job.require = lambda tasks: real(tasks if tasks[COUNT] < 7 else {**tasks, COUNT: 99})  # type: ignore[method-assign]
    loop = autopilot(back_off_s=600.0, settle_s=0.0)
    (taken,) = acted(flight.fly(loop, 90.0))
    assert taken.done == "rolled-back" and "still has 4 tasks and not 7 after 10 s" in taken.reason
    assert [one[COUNT] for one in operator.writes] == [7, 4]
    assert operator.writes[1] == {**TASKS, COUNT: 4}, "no override is removed, since that would redeploy the job"
    state = loop.files.state()
    assert state is not None and state.rolled_back_in_a_day == 1 and state.backing_off_until is not None
    assert state.resource == "streaming/wordcount" and state.respects_until is None, (
        "it does not take its own change for that of a person"
    )


@pytest.mark.slow
def test_the_operators_own_classes_take_the_patch_and_the_one_back_for_a_scaling(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    """SCALE is done in place; an UPGRADE would redeploy the job."""
    operator.fails = True
    flight.fly(autopilot(back_off_s=600.0), 60.0)
    before, patched, back = (
        {key: one[key] for key in ("apiVersion", "kind", "metadata", "spec")} for one in operator.documents
    )
    assert [kind for kind, _ in verdicts((before, patched), (patched, back))] == ["SCALE", "SCALE"]


def test_an_operator_that_refuses_the_spec_is_quoted_and_gets_the_former_one_back(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    operator.fails = True
    (taken,) = acted(flight.fly(autopilot(back_off_s=600.0), 60.0))
    assert taken.done == "rolled-back" and "the operator reports: the spec is refused" in taken.reason
    assert [one[COUNT] for one in operator.writes] == [7, 4] and flight.job.attempt == 0


def test_a_conflict_by_an_edit_between_reading_and_writing_is_respected_as_a_persons_rescale(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    operator.meanwhile = [lambda: operator.state(5)]
    stored = flight.fly(autopilot(respect_s=600.0), 180.0)
    (taken,) = acted(stored)
    assert taken.done == "failed" and taken.someone_else_at is not None
    assert (
        "somebody else has changed FlinkDeployment streaming/wordcount meanwhile, which was left alone" in taken.reason
    )
    assert operator.overrides == {COUNT: 5} and flight.job.tasks[COUNT] == 5
    assert {d.held for d in stored if d.number > taken.number} <= {"restarting", "person"}
    assert any(d.held == "person" for d in stored)


def test_a_conflict_by_the_operators_own_status_is_no_edit(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    operator.meanwhile = [operator.touch, operator.touch]
    (taken,) = acted(flight.fly(autopilot(), 60.0))
    assert taken.done == "rescaled" and operator.writes == [TASKS]
    assert operator.server.verbs.count("patch") == 3


def test_an_edit_while_the_operator_acts_is_left_as_it_is(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    operator.acts = False
    flown = autopilot(respect_s=600.0, sleep=lambda s: (flight.clock.sleep(s), edited())[0])
    steps: list[int] = []

    def edited() -> None:
        if operator.writes == [TASKS] and not steps:
            steps.append(1)
            operator.state(5)

    (taken,) = acted(flight.fly(flown, 60.0))
    assert taken.done == "failed" and taken.someone_else_at is not None
    assert operator.overrides == {COUNT: 5}, "no former spec is written over it"


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ({"mode": "standalone"}, "the operator would redeploy the job, since the resource is in standalone mode"),
        ({"image": "flink:1.19"}, "the operator is not done with FlinkDeployment streaming/wordcount"),
        ({"job": None}, "streaming/wordcount is a session cluster"),
        ({"flinkConfiguration": {OVERRIDES: "count=4"}}, f"{OVERRIDES} must be vertexId:tasks"),
    ],
)
def test_a_resource_that_cannot_be_scaled_in_place_now_holds_the_rescale_back(
    flight: Flight, operator: SteeredOperator, autopilot: Made, edit: dict[str, Any], why: str
) -> None:
    operator.acts = "mode" in edit
    operator.edit(**edit)
    before = operator.generation
    stored = flight.fly(autopilot(), 60.0)
    assert acted(stored) == [] and operator.generation == before
    (held,) = {d.reason for d in stored if d.done == "held-back"}
    assert why in held and {d.held for d in stored if d.done == "held-back"} == {"resource"}


def test_a_resource_of_another_job_is_not_touched(flight: Flight, operator: SteeredOperator, autopilot: Made) -> None:
    operator.resource["status"]["jobStatus"]["jobId"] = "2" * 32
    stored = flight.fly(autopilot(), 60.0)
    assert acted(stored) == [] and operator.writes == []
    assert any(f"deploys the job {'2' * 32}, and not {'1' * 32}" in d.reason for d in stored)


def test_through_rest_flink_rescales_first_and_the_resource_keeps_it(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    """The next reconciliation finds the tasks that run, and changes nothing."""
    (taken,) = acted(flight.fly(autopilot("rest"), 60.0))
    assert taken.done == "rescaled" and taken.rescale is not None and taken.rescale.method == "in-place"
    assert taken.rescale.seconds == pytest.approx(1.0, abs=0.4)
    assert flight.job.puts == [TASKS] and operator.writes == [TASKS]
    assert operator.server.verbs.index("dry-run") < operator.server.verbs.index("patch")


def test_through_rest_nothing_is_written_that_does_not_run(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    flight.flink.before = lambda method, path: setattr(flight.job, "slots", 4 if method == "PUT" else 16)
    (taken,) = acted(flight.fly(autopilot("rest", back_off_s=600.0), 60.0))
    assert taken.done == "rolled-back" and operator.writes == []


def test_a_rescale_by_rest_that_the_resource_states_already_goes_through_flink(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    """The operator does not act where the spec does not change, so a patch would have no effect."""
    operator.edit(flinkConfiguration=operator.resource["spec"]["flinkConfiguration"] | {
        OVERRIDES: ",".join(f"{v}:{n}" for v, n in TASKS.items())
    })  # fmt: skip
    operator._asked = operator.generation
    operator._report("STABLE")
    (taken,) = acted(flight.fly(autopilot(), 60.0))
    assert taken.done == "rescaled" and flight.job.puts == [TASKS]
    assert "patch" not in operator.server.verbs


def test_a_rescale_that_makes_the_job_worse_is_taken_back_in_the_resource(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    flight.job.breaks_above = 6
    stored = acted(flight.fly(autopilot(judge_s=20.0, back_off_s=600.0), 110.0))
    assert [d.done for d in stored] == ["rescaled", "rolled-back"]
    assert "it reads 1 records/s after 1,600 before" in stored[1].reason
    assert operator.writes == [TASKS, {**TASKS, COUNT: 4}] and flight.flink.changes == []


def test_a_dry_run_reads_alone(flight: Flight, operator: SteeredOperator, autopilot: Made) -> None:
    stored = flight.fly(autopilot(dry_run=True), 60.0)
    assert any(d.done == "dry-run" and d.rescale is not None and d.rescale.method == "resource" for d in stored)
    assert set(operator.server.verbs) == {"get"} and flight.flink.changes == []


def test_task_managers_that_start_on_demand_count_as_far_as_slots_are_allowed(
    flight: Flight, operator: SteeredOperator, autopilot: Made
) -> None:
    flight.job.slots = 4
    real = flight.job.require
    flight.job.require = lambda tasks: (setattr(flight.job, "slots", 16), real(tasks))[1]  # type: ignore[method-assign]
    assert acted(flight.fly(autopilot(), 60.0)) == []
    (taken,) = acted(flight.fly(autopilot(most_slots=16), 90.0))
    assert taken.done == "rescaled" and flight.job.tasks[COUNT] == 7
