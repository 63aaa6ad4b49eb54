"""From a rate to task slots: the paper's Table 3, and the inverse by its definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from models.capacity.surrogates import Surrogate, prediction_band

from models.capacity.selection import select
from models.capacity.sizing import MOST_TASK_SLOTS, slots_interval, task_slots_for
from models.errors import Infeasible, InvalidInput

LOG = Surrogate(name="log", memory=0.0, slots=5e5, intercept=-1e6)


@pytest.mark.parametrize(
    ("query", "rows", "model", "rate", "slots_by_memory"),
    [
        ("q5", 14, "log", 2.5e6, {65536: 1079, 32768: 1069}),
        ("q1", 10, "linear", 160e6, {8192: 179, 16384: 179, 32768: 179, 65536: 178}),
    ],
)
def test_table_3(published, query, rows, model, rate, slots_by_memory):
    surrogate = select(published(query, rows), forced=model).surrogate
    assert {m: task_slots_for(surrogate, m, rate, headroom=1.1) for m in slots_by_memory} == slots_by_memory


@given(
    name=st.sampled_from(["linear", "log", "sqrt"]),
    slots=st.floats(1e3, 1e6),
    intercept=st.floats(-1e6, 1e6),
    rate=st.floats(1e3, 2e6),
    minimum=st.integers(1, 60),
)
def test_it_is_the_smallest_number_of_slots_that_reaches_the_rate(name, slots, intercept, rate, minimum):
    surrogate = Surrogate(name=name, memory=1.0, slots=slots, intercept=intercept)
    try:
        answer = task_slots_for(surrogate, 4096, rate, 1.1, minimum)
    except Infeasible:
        assert surrogate.predict(4096, MOST_TASK_SLOTS) < 1.1 * rate
        return
    assert answer >= minimum
    assert surrogate.predict(4096, answer) >= 1.1 * rate
    assert answer == minimum or surrogate.predict(4096, answer - 1) < 1.1 * rate


def test_a_rate_that_is_never_reached_is_infeasible():
    with pytest.raises(Infeasible, match="5,907,756 records/s with 1,000,000 task slots"):
        task_slots_for(LOG, 4096, 1e7)
    falling = Surrogate(name="linear", memory=0.0, slots=-1.0, intercept=1000.0)
    with pytest.raises(Infeasible, match="no growth"):
        task_slots_for(falling, 4096, 2000)
    assert task_slots_for(falling, 4096, 500, minimum=9) == 9


def test_a_slope_next_to_nothing_is_infeasible_rather_than_endless():
    for name in ("linear", "log", "sqrt"):
        flat = Surrogate(name=name, memory=0.0, slots=1e-300, intercept=0.0)
        with pytest.raises(Infeasible, match="1,000,000 task slots"):
            task_slots_for(flat, 4096, 1e6)


def test_the_interval_inverts_the_prediction_band(published):
    data = published("q5", 14)
    surrogate = select(data, forced="log").surrogate
    interval = slots_interval(surrogate, data, 65536, 2.5e6)
    assert (interval.low, interval.value, interval.high) == (850, 1079, 1396)
    _, lower, upper = prediction_band("log", data, 65536, [849, 850, 1395, 1396])
    assert upper[0] < 2.75e6 <= upper[1]
    assert lower[2] < 2.75e6 <= lower[3]


def test_a_wider_probability_gives_a_wider_interval(published):
    data = published("q5", 14)
    surrogate = select(data, forced="log").surrogate
    narrow = slots_interval(surrogate, data, 65536, 2.5e6, probability=0.5)
    wide = slots_interval(surrogate, data, 65536, 2.5e6, probability=0.99)
    assert wide.low < narrow.low <= 1079 <= (narrow.high or 0) < (wide.high or 0)


def test_the_interval_is_open_above_where_growth_is_not_certain(published):
    # Four observations leave one degree of freedom: t is 12.7, and the lower limit falls as slots are added.
    data = published("q5", 14).rows([0, 3, 5, 9])
    surrogate = select(data, forced="log").surrogate
    interval = slots_interval(surrogate, data, 65536, 2.5e6, minimum=9, probability=0.999)
    assert interval.high is None
    assert 9 <= interval.low <= interval.value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0.0}, "rate must be finite and above 0"),
        ({"rate": float("nan")}, "rate must be finite"),
        ({"memory_mb": -1.0}, "memory must be finite and above 0"),
        ({"headroom": 0.9}, "headroom must be at least 1, but got 0.9"),
        ({"minimum": 0}, "fewest task slots must be at least 1"),
    ],
)
def test_unusable_questions_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        task_slots_for(LOG, **{"memory_mb": 4096.0, "rate": 1e5, **arguments})
