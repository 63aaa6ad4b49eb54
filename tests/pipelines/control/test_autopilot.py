from itertools import pairwise
from typing import Any

import pytest

from autopilots.flight import ACTIONS, Flight, actions, held, step_up
from flink.steered import COUNT, SINK, SOURCE
from models.errors import InvalidInput
from pipelines.control.files import StopSwitch
from pipelines.control.keeping.lease import LEASE_S, LeaseLost


def test_a_step_of_the_rate_is_followed_in_one_rescale(flight: Flight) -> None:
    flight.job.rate = step_up
    stored = flight.fly(flight.autopilot(), 180.0)
    assert actions(stored) == [("rescaled", 4, 7)]
    taken = next(d for d in stored if d.done == "rescaled")
    assert taken.rescale is not None and taken.rescale.method == "in-place" and taken.rescale.slots_after == 7
    # It runs again a second after the request, and is looked at every 0.2 s.
    assert taken.rescale.seconds == pytest.approx(1.0, abs=0.4)
    assert taken.rescale.downtime_s == pytest.approx(1.0, abs=0.4)
    assert taken.decision_s < 0.1
    assert taken.seen.arriving_rate == pytest.approx(2600.0, rel=0.01)
    assert taken.seen.read_rate == pytest.approx(1600.0, rel=0.01)
    assert taken.seen.vertices["count"].true_rate == pytest.approx(1600.0, rel=0.01)
    assert flight.job.puts == [{SOURCE: 1, COUNT: 7, SINK: 1}]
    assert list(flight.autopilot().files.decisions()) == stored
    assert [d.number for d in stored] == list(range(1, len(stored) + 1))


def test_a_dry_run_only_reads(flight: Flight) -> None:
    flight.job.rate = step_up
    stored = flight.fly(flight.autopilot(dry_run=True), 180.0)
    assert flight.flink.changes == []
    assert flight.job.tasks[COUNT] == 4
    would = [d for d in stored if d.done == "dry-run"]
    assert would and all(d.rescale is not None and d.rescale.after["count"] == 7 for d in would)
    assert all(d.rescale is not None and d.rescale.intent is None for d in would)


def test_a_policy_that_wants_other_memory_alone_is_held_back(flight: Flight) -> None:
    """Justin takes the managed memory of operators without state away, which Flink cannot do while they run."""
    flight.job.rate = step_up
    stored = flight.fly(
        flight.autopilot(policy="justin", settings={"decision_window_s": 60.0, "stabilization_s": 30.0}), 600.0
    )
    assert actions(stored) == [("rescaled", 4, 7)]
    assert [one[COUNT] for one in flight.job.puts] == [7]
    later = [d for d in stored if d.held == "memory"]
    assert later and all("equal share of what its TaskManager started with" in d.reason for d in later)


def test_a_quiet_job_is_recorded_once_a_minute_and_read_only(flight: Flight) -> None:
    stored = flight.fly(flight.autopilot(), 300.0)
    quiet = [d for d in stored if d.done == "none" and d.held is None]
    assert 4 <= len(quiet) <= 6
    assert [d.rounds for d in quiet][1:-1] == [6] * (len(quiet) - 2)
    assert flight.flink.changes == []


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({"freeze": [{"begin": "11:00", "end": "14:00"}]}, "freeze"),
        ({"most_tasks": 4}, "bounds"),
        ({"most_slots": 4}, "bounds"),
        ({"price_per_slot_hour": 0.5, "dollars_per_hour": 2.2}, "bounds"),
    ],
)
def test_a_limit_holds_a_rescale_back_and_is_named(flight: Flight, limits: dict[str, Any], limit: str) -> None:
    flight.job.rate = step_up
    stored = flight.fly(flight.autopilot(**limits), 180.0)
    assert flight.flink.changes == []
    assert held(stored) - {"restarting"} == {limit}


def test_a_recommendation_is_cut_to_the_slots_that_may_be_paid_for(flight: Flight) -> None:
    flight.job.rate = step_up
    stored = flight.fly(flight.autopilot(price_per_slot_hour=0.5, dollars_per_hour=3.0), 90.0)
    assert actions(stored) == [("rescaled", 4, 6)]
    (taken,) = [d.rescale for d in stored if d.done == "rescaled"]
    assert taken is not None and taken.price_after == 3.0
    assert taken.cut == "7 slots wanted and 6 slots for $3 an hour, so granted: count 6 of 7"


def test_no_more_rescales_a_day_than_allowed(flight: Flight) -> None:
    flight.job.rate = lambda t: 1000.0 if t % 240 < 120 else 2600.0
    stored = flight.fly(flight.autopilot(rescales_a_day=2), 900.0)
    assert len(actions(stored)) == 2
    assert "rescales-a-day" in held(stored)


def test_the_stop_switch_keeps_it_from_acting_until_it_is_removed(flight: Flight) -> None:
    flight.job.rate = step_up
    autopilot = flight.autopilot()
    autopilot.files.stop(StopSwitch(job="clicks", by="ada", reason="a release", stopped_at=flight.now()))
    stored = flight.fly(autopilot, 180.0)
    assert flight.flink.changes == [] and "stopped" in held(stored)
    assert any(d.reason == "ada has stopped it: a release" for d in stored)
    state = autopilot.files.state()
    assert state is not None and state.phase == "stopped"
    autopilot.files.resume()
    assert actions(flight.fly(autopilot, 60.0)) == [("rescaled", 4, 7)]


def test_a_rescale_by_a_person_is_respected_for_the_stated_time(flight: Flight) -> None:
    flight.job.rate = step_up
    autopilot = flight.autopilot(respect_s=600.0)
    flight.fly(autopilot, 40.0)
    flight.job.require({SOURCE: 1, COUNT: 5, SINK: 1})
    stored = flight.fly(autopilot, 500.0)
    assert actions(stored) == [] and flight.job.tasks[COUNT] == 5
    assert "person" in held(stored)
    assert actions(flight.fly(autopilot, 240.0)) == [("rescaled", 5, 7)]


def test_a_persons_rescale_while_no_autopilot_runs_is_noticed(flight: Flight) -> None:
    first = flight.autopilot()
    flight.fly(first, 60.0)
    first.close()
    flight.job.require({SOURCE: 1, COUNT: 5, SINK: 1})
    flight.job.rate = lambda t: 2600.0
    stored = flight.fly(flight.autopilot(respect_s=600.0), 120.0)
    assert actions(stored) == [] and "person" in held(stored)


@pytest.mark.slow
def test_a_demand_that_finds_no_slots_is_taken_back_and_waits_longer_each_time(flight: Flight) -> None:
    flight.job.rate = step_up
    # Slots that are gone once they are asked for.
    flight.flink.before = lambda method, path: setattr(flight.job, "slots", 4 if method == "PUT" else 16)
    stored = flight.fly(flight.autopilot(back_off_s=120.0), 700.0)
    done = [d for d in stored if d.done in ACTIONS]
    assert {d.done for d in done} == {"rolled-back"}
    assert flight.job.tasks[COUNT] == 4 and flight.job.required[COUNT] == 4
    waits = [(b.decided_at - a.decided_at).total_seconds() for a, b in pairwise(done)]
    # 120 s, then 240 s, from the end of one attempt of 20 s to the end of the next.
    assert [round(w, -1) for w in waits[:2]] == pytest.approx([140.0, 260.0], abs=20.0)
    assert "back-off" in held(stored)


def test_a_rescale_that_makes_the_job_worse_is_taken_back_and_counted(flight: Flight) -> None:
    flight.job.rate, flight.job.breaks_above = step_up, 6
    autopilot = flight.autopilot(judge_s=30.0, back_off_s=600.0)
    stored = flight.fly(autopilot, 240.0)
    assert actions(stored) == [("rescaled", 4, 7), ("rolled-back", 7, 4)]
    taken_back = stored[[d.done for d in stored].index("rolled-back")]
    assert "it reads 1 records/s after 1,600 before, while 2,600 arrive" in taken_back.reason
    state = autopilot.files.state()
    assert state is not None and (state.rescales_in_a_day, state.rolled_back_in_a_day) == (2, 1)
    assert state.backing_off_until is not None


def test_what_a_policy_expects_is_recorded(flight: Flight) -> None:
    stored = flight.fly(flight.autopilot(policy="sluice"), 180.0)
    outlook = stored[-1].outlook
    assert outlook is not None
    assert outlook.low <= 1000.0 * 1.01 and outlook.high >= 1000.0 * 0.99
    assert outlook.capacity == pytest.approx(0.95 * 1600.0, rel=0.1)
    assert outlook.late_allowed is not None and outlook.late_share == 0.0


def test_a_second_autopilot_waits_and_takes_over_when_the_first_is_gone(flight: Flight) -> None:
    flight.job.rate = step_up
    first, second = flight.autopilot(holder="first"), flight.autopilot(holder="second")
    for _ in range(12):
        flight.fly(first, 5.0)
        assert second.round() is None
        assert second.waits_for == "first"
    flight.fly(first, 30.0)
    assert flight.job.tasks[COUNT] == 7
    before = len(flight.job.puts)
    flight.clock.sleep(LEASE_S + 1.0)  # the first one is gone without a word
    stored = flight.fly(second, 120.0)
    assert [d.fence for d in stored] == [2] * len(stored)
    assert len(flight.job.puts) == before
    with pytest.raises(LeaseLost, match="acts on clicks, under lease 2"):
        first.round()


def test_one_that_ends_makes_room_at_once(flight: Flight) -> None:
    first, second = flight.autopilot(), flight.autopilot()
    flight.fly(first, 30.0)
    assert second.round() is None
    first.close()
    second.round()
    assert second.waits_for is None


def test_a_job_that_is_one_vertex_is_refused_with_a_reason(flight: Flight) -> None:
    flight.job.tasks = flight.job.required = {SOURCE: 4}
    flight.job.busy = dict.fromkeys((SOURCE, COUNT), 0.0)
    with pytest.raises(InvalidInput, match="runs as 1 vertex: Flink chained all of it"):
        flight.fly(flight.autopilot(), 60.0)
