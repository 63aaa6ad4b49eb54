"""From a rate to task slots: the paper's Table 3, risks, headrooms, and the inverse by its definition."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from known_answers.capacity_laws import regression
from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.regressions import fit_regression
from models.capacity.selection import select
from models.capacity.sizing import MOST_TASK_SLOTS, Margin, slots_interval, task_slots_for
from models.errors import Infeasible, InvalidInput

TENTH_MORE = Margin(headroom=1.1)
LOG = CapacityModel.of(regression("log", 0.0, 5e5, -1e6))


@pytest.mark.parametrize(
    ("query", "rows", "law", "rate", "slots_by_memory"),
    [
        ("q5", 14, "log", 2.5e6, {65536: 1079, 32768: 1069}),
        ("q1", 10, "linear", 160e6, {8192: 179, 16384: 179, 32768: 179, 65536: 178}),
    ],
)
def test_table_3(published, query, rows, law, rate, slots_by_memory):
    model = select(published(query, rows), forced=law).model
    assert {m: task_slots_for(model, m, rate, TENTH_MORE) for m in slots_by_memory} == slots_by_memory
    assert Margin.asked(None, None, model) == TENTH_MORE


@given(
    law=st.sampled_from(["linear", "log", "sqrt"]),
    slots=st.floats(1e3, 1e6),
    intercept=st.floats(-1e6, 1e6),
    rate=st.floats(1e3, 2e6),
    minimum=st.integers(1, 60),
)
def test_it_is_the_smallest_number_of_slots_that_reaches_the_rate(law, slots, intercept, rate, minimum):
    fitted = regression(law, 1.0, slots, intercept)
    try:
        answer = task_slots_for(CapacityModel.of(fitted), 4096, rate, TENTH_MORE, minimum)
    except Infeasible:
        assert fitted.predict(4096, MOST_TASK_SLOTS) < 1.1 * rate
        return
    assert answer >= minimum
    assert fitted.predict(4096, answer) >= 1.1 * rate
    assert answer == minimum or fitted.predict(4096, answer - 1) < 1.1 * rate


@pytest.fixture(scope="module")
def q1(published) -> CapacityModel:
    return select(published("q1", 12)).model


@settings(max_examples=25)
@given(risk=st.floats(0.02, 0.5), rate=st.floats(1e5, 4e7), minimum=st.integers(2, 60))
def test_a_risk_takes_the_smallest_number_that_is_sure_enough(q1, risk, rate, minimum):
    model = q1
    try:
        answer = task_slots_for(model, 8192, rate, Margin(risk=risk), minimum)
    except Infeasible:
        assert model.sustains(8192, MOST_TASK_SLOTS, rate)[0] < 1 - risk
        return
    assert model.sustains(8192, answer, rate)[0] >= 1 - risk
    assert answer == minimum or model.sustains(8192, answer - 1, rate)[0] < 1 - risk


def test_less_risk_takes_more_slots(q1):
    slots = [task_slots_for(q1, 65536, 40e6, Margin(risk=risk)) for risk in (0.5, 0.2, 0.1, 0.05)]
    assert slots == sorted(slots)
    assert slots[0] == task_slots_for(q1, 65536, 40e6, Margin(headroom=1.0))


def test_a_rate_that_is_never_reached_is_infeasible():
    with pytest.raises(Infeasible, match="5,907,756 records/s with 1,000,000 task slots"):
        task_slots_for(LOG, 4096, 1e7, TENTH_MORE)
    falling = CapacityModel.of(regression("linear", 0.0, -1.0, 1000.0))
    with pytest.raises(Infeasible, match="no growth"):
        task_slots_for(falling, 4096, 2000, TENTH_MORE)
    assert task_slots_for(falling, 4096, 500, TENTH_MORE, minimum=9) == 9


def test_a_risk_that_no_number_of_slots_meets_is_infeasible_and_says_how_sure_one_can_be(published):
    model = select(published("q5", 14)).model
    with pytest.raises(
        Infeasible, match=r"even 1,000,000 task slots .* probability of \d+% only, less than 90%; measure"
    ):
        task_slots_for(model, 65536, 1e12, Margin(risk=0.1))


def test_a_slope_next_to_nothing_is_infeasible_rather_than_endless():
    for law in ("linear", "log", "sqrt"):
        flat = CapacityModel.of(regression(law, 0.0, 1e-300, 0.0))
        with pytest.raises(Infeasible, match="1,000,000 task slots"):
            task_slots_for(flat, 4096, 1e6, TENTH_MORE)


def test_the_interval_inverts_the_prediction_band(published):
    model = select(published("q5", 14), forced="log").model
    interval = slots_interval(model, 65536, 2.5e6, TENTH_MORE)
    assert (interval.low, interval.value, interval.high) == (850, 1079, 1396)
    low, high = model.quantiles(65536, [849, 850, 1395, 1396], (0.025, 0.975)).T
    assert high[0] < 2.75e6 <= high[1]
    assert low[2] < 2.75e6 <= low[3]


def test_a_wider_probability_gives_a_wider_interval(published):
    model = select(published("q5", 14), forced="log").model
    narrow = slots_interval(model, 65536, 2.5e6, TENTH_MORE, probability=0.5)
    wide = slots_interval(model, 65536, 2.5e6, TENTH_MORE, probability=0.99)
    assert wide.low < narrow.low <= 1079 <= (narrow.high or 0) < (wide.high or 0)


def test_the_interval_is_open_above_where_growth_is_not_certain(published):
    # Four observations leave one degree of freedom: t is 12.7, and the lower limit falls as slots are added.
    model = CapacityModel.of(fit_regression("log", published("q5", 14).rows([0, 3, 5, 9])))
    interval = slots_interval(model, 65536, 2.5e6, TENTH_MORE, minimum=9, probability=0.999)
    assert interval.high is None
    assert 9 <= interval.low <= interval.value


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 0.0}, "rate must be finite and above 0"),
        ({"rate": float("nan")}, "rate must be finite"),
        ({"memory_mb": -1.0}, "memory must be finite and above 0"),
        ({"minimum": 0}, "fewest task slots must be at least 1"),
    ],
)
def test_unusable_questions_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        task_slots_for(LOG, **{"memory_mb": 4096.0, "rate": 1e5, "margin": TENTH_MORE, **arguments})


@pytest.mark.parametrize(
    ("risk", "headroom", "message"),
    [
        (0.1, 1.1, "either a risk or a headroom, but got both"),
        (None, 0.9, "headroom must be 1 to 1000, but got 0.9"),
        (0.0, None, "risk must be above 0 and at most 0.5, but got 0"),
        (float("nan"), None, "risk must be above 0"),
    ],
)
def test_unusable_margins_are_refused(risk, headroom, message):
    with pytest.raises(InvalidInput, match=message):
        Margin.asked(risk, headroom, LOG)


def test_the_default_is_a_risk_over_all_laws(published):
    assert Margin.asked(None, None, select(published("q5", 14)).model) == Margin(risk=0.1)
    assert Margin(risk=0.1).of(1e6) == "1,000,000 records/s, 90% sure"
    assert TENTH_MORE.of(1e6) == "1.1 x 1,000,000 records/s"
