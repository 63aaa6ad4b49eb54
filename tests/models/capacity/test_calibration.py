"""The fit of unit costs to what workers used, by numbers that can be checked by hand."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.capacity.calibration import (
    LEAST_FACTOR,
    WorkerWindow,
    common_factor,
    cores_for_tasks,
    deviation,
    fit_factor,
    fit_unit_costs,
    hot_share,
    median_absolute,
    relative_error,
)
from models.errors import InvalidInput, SluiceError

# A record costs `map` 2 ms and `count` 1 ms.
BOTH = WorkerWindow(cores=0.2 + 0.1, busy=0.3, rates={"map": 100.0, "count": 100.0})
COUNT = WorkerWindow(cores=0.2, busy=0.2, rates={"count": 200.0})


def test_costs_come_out_of_two_windows_whatever_was_guessed() -> None:
    fitted = fit_unit_costs([BOTH, COUNT], {"map": 0.005, "count": 0.0002}, weight=1e-6)
    assert fitted == pytest.approx({"map": 0.002, "count": 0.001}, rel=1e-6)


def test_operators_that_always_share_a_worker_keep_the_proportion_of_the_guess() -> None:
    # 0.6 cores at 100 records/s: 6 ms together, of which the guess gives `map` two thirds of 3 ms.
    window = WorkerWindow(cores=0.6, busy=0.6, rates={"map": 100.0, "count": 100.0})
    fitted = fit_unit_costs([window] * 2, {"map": 0.002, "count": 0.002}, weight=1e-4)
    assert fitted == pytest.approx({"map": 0.003, "count": 0.003}, rel=1e-3)


def test_a_guess_weighs_as_much_as_a_window_that_is_off_by_a_tenth_of_it() -> None:
    # x = c / guess: (x/2 - 1)^2 + 0.01 (x - 1)^2 is least at x = (1/2 + 0.01) / (1/4 + 0.01).
    window = WorkerWindow(cores=0.2, busy=0.2, rates={"map": 100.0})
    assert fit_unit_costs([window], {"map": 0.001})["map"] == pytest.approx(0.001 * 0.51 / 0.26)


def test_full_workers_count_more_than_those_with_little_to_do() -> None:
    # 2 ms on a full worker, 4 ms on one that is a tenth full: least (x - 1)^2 + (0.05 x - 0.1)^2, x = c / 2 ms.
    full = WorkerWindow(cores=0.2, busy=1.0, rates={"map": 100.0})
    idle = WorkerWindow(cores=0.02, busy=0.02, rates={"map": 5.0})
    fitted = fit_unit_costs([full, idle], {"map": 0.002}, weight=1e-6)
    assert fitted["map"] == pytest.approx(0.002 * 1.005 / 1.0025)


def test_an_operator_that_hardly_shows_beside_another_keeps_a_tenth_of_its_guess() -> None:
    # `count` runs beside `map` on the worker that used less: by the two windows alone a record would cost it -1 ms.
    alone = WorkerWindow(cores=0.4, busy=0.4, rates={"map": 100.0})
    beside = WorkerWindow(cores=0.3, busy=0.3, rates={"map": 100.0, "count": 100.0})
    assert fit_unit_costs([alone, beside], {"map": 0.003, "count": 0.001})["count"] == pytest.approx(0.0001)


@given(st.lists(st.floats(1e-6, 1e-2), min_size=2, max_size=5), st.floats(1.0, 1e4), st.floats(0.2, 5.0))
def test_operators_alone_on_workers_are_found_whatever_was_guessed(
    costs: list[float], cores: float, wrong: float
) -> None:
    # Each worker is as full as the others, so that each operator's rate is cores / cost.
    true = {f"operator-{i}": c for i, c in enumerate(costs)}
    windows = [WorkerWindow(cores=cores, busy=cores, rates={name: cores / c}) for name, c in true.items()]
    fitted = fit_unit_costs(windows, {name: c * wrong for name, c in true.items()}, weight=1e-6)
    assert fitted == pytest.approx(true, rel=1e-3)


def test_what_cannot_be_fitted_is_told() -> None:
    with pytest.raises(InvalidInput, match="'map'"):
        fit_unit_costs([BOTH], {"map": 0.0, "count": 0.001})
    with pytest.raises(InvalidInput, match="'count'"):
        fit_unit_costs([BOTH], {"map": 0.001})
    with pytest.raises(SluiceError, match="no worker used any CPU time"):
        fit_unit_costs([WorkerWindow(0.0, 0.0, {"map": 1.0})], {"map": 0.001})


def test_cores_are_seen_where_tasks_wait_for_them() -> None:
    full = WorkerWindow(cores=0.2, busy=1.5, rates={})
    less = WorkerWindow(cores=0.18, busy=1.0, rates={})
    waits_for_nothing = WorkerWindow(cores=0.95, busy=1.0, rates={})
    assert cores_for_tasks([full, less, waits_for_nothing]) == 0.2
    assert cores_for_tasks([waits_for_nothing]) is None
    assert cores_for_tasks([]) is None


def test_a_burst_beyond_the_quota_is_no_core() -> None:
    burst, full = (WorkerWindow(cores=cores, busy=1.0, rates={}) for cores in (0.18, 0.14))
    assert cores_for_tasks([burst, full], quota=0.15) == 0.15
    assert cores_for_tasks([full], quota=0.15) == 0.14
    assert cores_for_tasks([], quota=0.15) is None


def test_tasks_that_wait_for_state_are_not_short_of_cores() -> None:
    # 3 of 4 busy seconds are CPU time, since tasks wait for their state; those without any do not wait.
    waits = WorkerWindow(cores=3.0, busy=4.0, rates={}, stateless=WorkerWindow(1.0, 1.0, {}))
    assert cores_for_tasks([waits], state_waits=True) is None
    assert cores_for_tasks([waits]) == 3.0
    short = WorkerWindow(cores=2.0, busy=4.0, rates={}, stateless=WorkerWindow(0.5, 1.0, {}))
    assert cores_for_tasks([waits, short], state_waits=True) == 2.0


def test_tasks_that_wait_outside_the_job_are_not_short_of_cores() -> None:
    # 100 records/s that cost 2 ms and wait for 8 ms: all of the busy second. With 5 ms to wait a third of it is left.
    calls = WorkerWindow(cores=0.2, busy=1.0, rates={"call": 100.0})
    assert cores_for_tasks([calls]) == 0.2
    assert cores_for_tasks([calls], external_wait_s={"call": 0.008}) is None
    assert cores_for_tasks([calls], external_wait_s={"call": 0.005}) == 0.2
    # Of tasks without state only their own waits count.
    beside = WorkerWindow(cores=0.7, busy=1.5, rates={"call": 100.0, "count": 50.0}, stateless=calls)
    assert cores_for_tasks([beside], state_waits=True, external_wait_s={"call": 0.008, "count": 1.0}) is None


def test_what_load_takes_from_cores_is_no_cost_of_a_record() -> None:
    # 9 of 16 cores in use beside the first lose half of the tenth that all would: 100 records for 95 at full speed.
    window = WorkerWindow(cores=8.5, busy=9.0, rates={"map": 95.0})
    assert window.at_full_speed(16.0, 0.1).rates == {"map": pytest.approx(100.0)}
    assert window.at_full_speed(math.inf, 0.1) == window


def test_unit_costs_grow_by_what_was_predicted_too_high() -> None:
    # Twice too high and half too low: right in the geometric mean.
    assert common_factor([200.0, 50.0], [100.0, 100.0]) == pytest.approx(1.0)
    assert common_factor([200.0, 200.0], [100.0, 100.0]) == pytest.approx(2.0)
    assert common_factor([100.0], [400.0]) == pytest.approx(0.25)


def test_a_factor_is_found_though_unit_costs_are_not_all_that_limits_a_job() -> None:
    # Half of a record's 10 ms is something else than its unit costs: 5 ms + 5 ms f = 8 ms.
    def predicted(factor: float) -> list[float]:
        return [1 / (0.005 + 0.005 * factor)] * 2

    factor, off = fit_factor(predicted, [125.0, 125.0])
    assert factor == pytest.approx(0.6, rel=0.01)
    assert off == pytest.approx(0.0, abs=0.01)
    # 4 ms are less than what unit costs cannot change.
    factor, off = fit_factor(predicted, [250.0, 250.0])
    assert factor == LEAST_FACTOR
    assert off == pytest.approx(math.log(7.5 / 4))
    # Half of the costs, where all of the MST is theirs: one step.
    assert fit_factor(lambda factor: [100.0 / factor], [125.0]) == pytest.approx((0.8, 0.0))


def test_predictions_deviate_by_as_much_above_as_below() -> None:
    assert deviation([200.0, 50.0], [100.0, 100.0]) == pytest.approx(math.log(2))
    # log 3 and nothing: log 3 / sqrt 2.
    assert deviation([300.0, 100.0], [100.0, 100.0]) == pytest.approx(math.log(3) / math.sqrt(2))
    assert deviation([100.0], [100.0]) == 0.0


def test_errors_are_relative_to_what_was_measured() -> None:
    assert relative_error(110.0, 100.0) == pytest.approx(0.1)
    assert relative_error(50.0, 100.0) == pytest.approx(-0.5)
    assert median_absolute([0.1, -0.3, 0.2]) == pytest.approx(0.2)


def test_a_hot_key_is_what_the_fullest_task_has_beyond_its_share() -> None:
    # Half of the records are hot, the others spread over 4 tasks: 0.5 + 0.125.
    assert hot_share([0.625, 0.125, 0.125, 0.125]) == pytest.approx(0.5)
    assert hot_share([0.25] * 4) == 0.0
    assert hot_share([1.0]) == 0.0
    assert hot_share([1.0, 0.0]) == 1.0
    assert not math.isnan(hot_share([0.5, 0.5]))
