"""An autopilot of a FlinkDeployment that is killed at any step: the next one brings the action to its end, once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from autopilots.flight import Flight
from autopilots.killing import Death, fly_until_killed
from flink.steered import COUNT
from on_kubernetes.steered_operator import TASKS, SteeredOperator
from pipelines.control.actions.deployment import open_api
from pipelines.control.autopilot import Autopilot
from pipelines.control.keeping.lease import LEASE_S
from pipelines.store.workspace import Workspace

Made = Callable[..., Autopilot]


def mortal(flight: Flight, autopilot: Made, death: Death, through: str) -> Autopilot:
    """Its effects are counted: what it stores, what it writes into the resource, and what it asks of Flink."""
    flight.workspace = Workspace(flight.workspace.url)
    for name in ("create_bytes", "write_bytes"):
        setattr(flight.workspace, name, death.of(getattr(flight.workspace, name)))

    @contextmanager
    def connect(context: str | None) -> Iterator[Any]:
        with open_api(context) as api:
            api.patch = death.of(api.patch)  # type: ignore[method-assign]
            yield api

    loop = autopilot(through, connect=connect)
    flight.rests[-1].require = death.of(flight.rests[-1].require)  # type: ignore[method-assign]
    return loop


def done_after(flight: Flight, autopilot: Made, death: Death, through: str, asleep_s: float = LEASE_S + 1) -> list[Any]:
    """What was done, where a process is killed by `death`, and another one follows."""
    url = flight.workspace.url
    fly_until_killed(flight, mortal(flight, autopilot, death, through), 30.0)
    assert death.happened
    flight.workspace = Workspace(url)
    flight.clock.sleep(asleep_s)
    loop = autopilot(through, back_off_s=600.0)
    flight.fly(loop, LEASE_S + 11.0)
    decisions = list(loop.files.decisions())
    assert [d.number for d in decisions] == sorted({d.number for d in decisions})
    return [(d.done, d.rescale.after["count"]) for d in decisions if d.rescale is not None]


def find_no_slots(flight: Flight) -> None:
    """For more than the tasks that run."""
    require = flight.job.require
    flight.job.slots = 8
    flight.job.require = lambda tasks: require(  # type: ignore[method-assign]
        tasks if tasks[COUNT] < 7 else {**tasks, COUNT: 99}
    )


@pytest.fixture
def first(flight: Flight, autopilot: Made) -> None:
    """One that has ended before, so that the steps counted are those around the rescale."""
    loop = autopilot()
    flight.fly(loop, 32.0)
    loop.close()


# Five writes of lease and state come before each of these steps.
INTENT, PATCH, DECISION = 6, 7, 8


@pytest.mark.slow
@pytest.mark.parametrize("step", [INTENT, PATCH, DECISION])
def test_no_patch_is_lost_or_sent_twice(
    flight: Flight, operator: SteeredOperator, autopilot: Made, first: None, step: int
) -> None:
    assert done_after(flight, autopilot, Death(step, after=True), "operator") == [("rescaled", 7)]
    assert operator.writes == [TASKS] and operator.generation == 2 and flight.job.attempt == 1


BEFORE_BACK, BACK, PATCH_BACK = 9, 10, 11


@pytest.mark.slow
@pytest.mark.parametrize("step", [BEFORE_BACK, BACK, PATCH_BACK])
def test_what_is_being_taken_back_in_the_resource_is_taken_back(
    flight: Flight, operator: SteeredOperator, autopilot: Made, first: None, step: int
) -> None:
    find_no_slots(flight)
    assert done_after(flight, autopilot, Death(step, after=True), "operator") == [("rolled-back", 7)]
    assert [one[COUNT] for one in operator.writes] == [7, 4] and flight.job.tasks[COUNT] == 4


ASKED, WRITTEN = 8, 9


@pytest.mark.slow
@pytest.mark.parametrize("step", [ASKED, WRITTEN])
def test_what_flink_has_rescaled_is_written_into_the_resource_once(
    flight: Flight, operator: SteeredOperator, autopilot: Made, first: None, step: int
) -> None:
    assert done_after(flight, autopilot, Death(step, after=True), "rest") == [("rescaled", 7)]
    assert operator.writes == [TASKS] and operator.generation == 2 and flight.job.attempt == 1


def test_an_edit_before_the_patch_while_no_process_ran_is_left_as_it_is(
    flight: Flight, operator: SteeredOperator, autopilot: Made, first: None
) -> None:
    url = flight.workspace.url
    fly_until_killed(flight, mortal(flight, autopilot, Death(INTENT, after=True), "operator"), 30.0)
    operator.state(5)
    flight.workspace = Workspace(url)
    flight.clock.sleep(LEASE_S + 1.0)
    loop = autopilot(respect_s=600.0)
    (taken,) = [d for d in flight.fly(loop, LEASE_S + 11.0) if d.rescale is not None]
    assert (taken.done, operator.overrides) == ("failed", {COUNT: 5}) and taken.someone_else_at is not None


def test_a_patch_that_was_intended_long_ago_is_not_sent(
    flight: Flight, operator: SteeredOperator, autopilot: Made, first: None
) -> None:
    done = done_after(flight, autopilot, Death(INTENT, after=True), "operator", asleep_s=600.0)
    assert done == [("failed", 7)] and operator.writes == []
