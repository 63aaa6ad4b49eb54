"""Task slots for objectives: a twin made by hand, 100 records/s a task slot, whose answers can be computed."""

import math
from dataclasses import dataclass, field

import pytest

from known_answers.capacity_laws import line
from models.capacity.observation import Budget
from models.capacity.sizing import Margin, slots_interval
from models.errors import Infeasible
from models.objectives.objectives import Objectives
from models.objectives.parsing import parse_objectives
from models.objectives.recovery import recovery_s
from models.planning.budget import Sizing
from models.planning.inputs import PlanningModel
from models.planning.meeting import Foreseen, meet

RATE = 4000.0
MODEL = PlanningModel(uri="models:/j/1", mlflow_run_id="r", capacity=line(100.0), reason="the only one")


@dataclass
class Twin:
    """Lag falls with the slots as 1200 / n; an outage is recovered from with a share of what the slots take."""

    asked: Objectives
    share: float = 1.0
    seen: list[int] = field(default_factory=list)

    def __call__(self, slots: int) -> Foreseen:
        self.seen.append(slots)
        recovery = self.asked.recovery
        taken = None if recovery is None else recovery_s(recovery, RATE, 100 * self.share * slots)
        recovered = None if recovery is None else math.inf if taken is None else taken
        return Foreseen(1200 / slots if self.asked.lag else None, recovered, RATE)


def sizing(catch_up: float = 1.0) -> Sizing:
    margin = Margin(headroom=1.25, catch_up=catch_up)
    slots = slots_interval(MODEL.capacity, 1024, RATE, margin)
    return Sizing(
        model=MODEL,
        margin=margin,
        planned_rate=margin.sources_factor * RATE,
        budget=Budget(task_slots=slots.value, memory_mb=1024),
        slots=slots,
        task_slots_by_memory_mb={1024.0: slots.value},
        slots_per_worker=4,
        reason="50 slots",
    )


def test_the_rate_binds_where_the_objectives_need_no_more() -> None:
    # 1.25 x 4000 records/s take 50 slots; they recover from 1 min in 1 min x 4000 / 1000 = 4 min.
    asked = parse_objectives("lag p99 < 30 s, recover 1 min outage in 4 min")
    found = meet(sizing(1.25), asked, RATE, 50, 1000, Twin(asked))
    assert found.objectives is not None and found.objectives.binding == "rate"
    assert found.budget.task_slots == 50
    rate, recovery, lag = found.objectives.outcomes
    assert (rate.task_slots, rate.predicted, rate.predicted_by) == (50, pytest.approx(5000), "capacity model")
    assert (recovery.task_slots, recovery.predicted, recovery.predicted_by) == (50, pytest.approx(240), "twin")
    assert (lag.task_slots, lag.predicted) == (None, pytest.approx(24))


def test_recovery_binds_where_it_needs_more_than_the_rate() -> None:
    # 1.75 x 4000 records/s take 70 slots, which recover in 900 x 4000 / 3000 = 1200 s.
    asked = parse_objectives("recover 15 min outage in 20 min")
    found = meet(sizing(1.75), asked, RATE, 50, 1000, None)
    assert found.objectives is not None and found.objectives.binding == "recovery"
    assert (found.budget.task_slots, found.planned_rate) == (70, 7000)
    recovery = found.objectives.outcome("recovery")
    assert recovery is not None
    assert (recovery.task_slots, recovery.predicted, recovery.predicted_by) == (
        70,
        pytest.approx(1200),
        "capacity model",
    )


@pytest.mark.parametrize(
    ("half", "words"),
    [
        # 6,000 to 8,000 records/s are 2,000 to 4,000 above the rate, which read 900 s of 4,000 records/s.
        (1000.0, "is expected to recover in 1,200 s (900 to 1,800 s with 95% probability)"),
        # 3,500 to 10,500 records/s: the low end is less than the rate.
        (3500.0, "is expected to recover in 1,200 s (554 s or more, perhaps never, with 95% probability)"),
        (0.0, "is expected to recover in 1,200 s after an outage"),
    ],
)
def test_how_sure_the_capacity_model_is_of_a_recovery_is_stated(half: float, words: str) -> None:
    asked = parse_objectives("recover 15 min outage in 20 min")
    unsure = MODEL.model_copy(update={"capacity": line(100.0, error=half / 1.959964)})
    found = meet(sizing(1.75).model_copy(update={"model": unsure}), asked, RATE, 50, 1000, None)
    assert found.objectives is not None and (recovery := found.objectives.outcome("recovery")) is not None
    assert words in recovery.sentence


def test_lag_binds_at_the_fewest_slots_whose_lag_is_short_enough() -> None:
    # 1200 / 60 = 20 s. Sizes are tried in steps of 10 %, and the last step is halved until it is within 3 %.
    asked = parse_objectives("lag p99 < 20 s")
    twin = Twin(asked)
    found = meet(sizing(), asked, RATE, 50, 1000, twin)
    assert found.objectives is not None and found.objectives.binding == "lag"
    assert found.budget.task_slots == 60
    assert found.slots.value == found.budget.task_slots == found.slots.high == found.task_slots_by_memory_mb[1024]
    assert twin.seen == [50, 56, 62, 59, 60]
    assert found.reason == "50 slots; 60 for 'lag p99 < 20 s', by the twin"
    assert found.objectives.title == "sized by the lag: lag p99 < 20 s"


def test_a_twin_that_takes_less_raises_the_slots_for_the_recovery() -> None:
    # Of 70 slots 0.8 count: 1600 records/s above the rate recover in 2250 s. 87.5 slots take 7000.
    asked = parse_objectives("recover 15 min outage in 20 min")
    found = meet(sizing(1.75), asked, RATE, 50, 1000, Twin(asked, share=0.8))
    assert found.objectives is not None and found.objectives.binding == "recovery"
    assert 88 <= found.budget.task_slots <= 88 * 1.03
    assert (found.objectives.outcomes[1].predicted or math.inf) <= 1200


def test_out_of_reach_says_how_far_the_most_slots_come() -> None:
    asked = parse_objectives("lag p99 < 20 s")
    with pytest.raises(Infeasible, match="with 55 task slots, the most that can be had, the twin predicts 22 s"):
        meet(sizing(), asked, RATE, 50, 55, Twin(asked))
    never = parse_objectives("recover 15 min outage in 20 min")
    with pytest.raises(Infeasible, match="the largest size tried, the twin predicts more time"):
        meet(sizing(1.75), never, RATE, 50, 10**6, Twin(never, share=0.01))
