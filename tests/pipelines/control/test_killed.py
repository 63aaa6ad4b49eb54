"""An autopilot that is killed at any step of an action: the next one brings it to its end, once."""

from typing import Any

import pytest

from autopilots.flight import ACTIONS, Flight
from autopilots.killing import Death, Killed, fly_until_killed
from flink.steered import COUNT
from pipelines.control.autopilot import Autopilot
from pipelines.control.keeping.lease import LEASE_S
from pipelines.control.record import AutopilotDecision
from pipelines.store.workspace import Damaged, Workspace


def mortal(flight: Flight, death: Death) -> Autopilot:
    """An autopilot whose effects are counted: what it stores, and what it asks of Flink while it acts."""
    flight.workspace = Workspace(flight.workspace.url)
    for name in ("create_bytes", "write_bytes"):
        setattr(flight.workspace, name, death.of(getattr(flight.workspace, name)))
    autopilot = flight.autopilot(timeout_s=10.0)
    rest = flight.rests[-1]
    rest.put, rest.require = death.of(rest.put), death.of(rest.require)  # type: ignore[method-assign]
    return autopilot


def stored(flight: Flight) -> list[AutopilotDecision]:
    return list(flight.autopilot().files.decisions())


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("step", range(1, 15))
def test_no_action_is_lost_or_done_twice(flight: Flight, step: int, after: bool) -> None:
    flight.job.rate = lambda t: 1000.0 if t < 25 else 2600.0
    url = flight.workspace.url
    first = mortal(flight, Death(0, after=False))
    flight.fly(first, 30.0)  # so that the steps counted are those around the rescale
    first.close()
    flight.workspace = Workspace(url)
    death = Death(step, after=after)
    fly_until_killed(flight, mortal(flight, death), 60.0)
    assert death.happened
    flight.workspace = Workspace(url)
    flight.clock.sleep(LEASE_S + 1.0)
    flight.fly(flight.autopilot(timeout_s=10.0), LEASE_S + 60.0)
    assert flight.job.tasks[COUNT] == 7
    # Each change was requested once, or again with the same tasks, which changes nothing.
    asked = [one[COUNT] for one in flight.job.puts]
    assert set(asked) == {7} and flight.job.attempt == 1
    decisions = stored(flight)
    assert [(d.done, d.rescale.after["count"]) for d in decisions if d.rescale is not None] == [("rescaled", 7)]
    assert [d.number for d in decisions] == sorted({d.number for d in decisions})


@pytest.mark.slow
@pytest.mark.parametrize("step", range(1, 13))
def test_what_is_being_taken_back_is_taken_back(flight: Flight, step: int) -> None:
    """Killed after each effect of a rescale that finds no slots."""
    flight.job.rate = lambda t: 2600.0
    flight.flink.before = lambda method, path: setattr(flight.job, "slots", 4 if method == "PUT" else 16)
    url = flight.workspace.url
    death = Death(step, after=True)
    fly_until_killed(flight, mortal(flight, death), 60.0)
    assert death.happened
    flight.workspace = Workspace(url)
    flight.clock.sleep(LEASE_S + 1.0)
    flight.fly(flight.autopilot(timeout_s=10.0, back_off_s=600.0), LEASE_S + 60.0)
    assert flight.job.tasks[COUNT] == flight.job.required[COUNT] == 4
    assert flight.job.attempt == 0
    done = [d.done for d in stored(flight) if d.done in ACTIONS]
    assert done == ["rolled-back"]


def test_an_action_that_was_intended_long_ago_is_not_begun(flight: Flight) -> None:
    flight.job.rate = lambda t: 2600.0
    url = flight.workspace.url
    # Killed between the intent and the request.
    workspace = flight.workspace
    autopilot = flight.autopilot(timeout_s=10.0)

    def killed(*_: Any) -> None:
        raise Killed

    flight.rests[-1].require = killed  # type: ignore[method-assign, assignment]
    fly_until_killed(flight, autopilot, 60.0)
    assert flight.job.puts == [] and workspace.list("autopilot/clicks/intents")
    flight.job.rate = lambda t: 100.0
    flight.job.lag = 0.0
    flight.workspace = Workspace(url)
    flight.clock.sleep(600.0)
    flight.fly(flight.autopilot(respect_s=0.0), 60.0)
    failed = [d for d in stored(flight) if d.done == "failed"]
    assert len(failed) == 1 and "ended before it had acted" in failed[0].reason
    assert all(one[COUNT] < 4 for one in flight.job.puts)


def test_an_autopilot_that_cannot_read_what_was_done_gives_the_lease_back(flight: Flight) -> None:
    key = "autopilot/clicks/intents/000000007.json"
    flight.workspace.write_bytes(key, b"{")
    with pytest.raises(Damaged, match="000000007"):
        flight.autopilot(holder="one").round()
    flight.workspace.delete(key)
    other = flight.autopilot(holder="other")
    other.round()
    assert other.waits_for is None
