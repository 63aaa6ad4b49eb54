"""Which surrogate is chosen, and what is said about it."""

import numpy as np
import pytest
from models.capacity.surrogates import Dataset, extrapolation_rmse, extrapolation_tells, fit, loocv_rmse

from models.capacity.selection import select
from models.errors import Infeasible, InvalidInput

SLOTS = np.array([4, 8, 12, 16, 24, 32, 40, 48.0])
MEMORY = np.resize(np.array([8192.0, 65536.0]), 8)


@pytest.mark.parametrize(
    ("query", "rows", "model"),
    # The first 14 rows of q5 give log, as Table 4 has it: their lower half spans 9 to 11 slots, so LOOCV decides. It
    # decides for q1, too (2 to 3 slots), where Table 4 has linear. All 22 rows of q5 span 9 to 29 in their lower half.
    [("q5", 14, "log"), ("q1", 10, "sqrt"), ("q1", 30, "sqrt"), ("q5", 22, "sqrt")],
)
def test_the_published_rows_by_the_rule(published, query, rows, model):
    data = published(query, rows)
    selection = select(data)
    assert selection.model == selection.surrogate.name == model
    deciding = selection.extrapolation if extrapolation_tells(data) else selection.loocv
    assert deciding[model] == min(deciding.values())


def test_the_choice_can_be_forced_and_keeps_every_error(published):
    data = published("q5", 14)
    chosen, forced = select(data), select(data, forced="sqrt")
    assert (chosen.model, forced.model) == ("log", "sqrt")
    assert forced.surrogate == fit("sqrt", data)
    assert (forced.loocv, forced.extrapolation) == (chosen.loocv, chosen.extrapolation)
    assert forced.reason == "sqrt was asked for (LOOCV RMSE 50,055, extrapolation RMSE 95,081)."


def test_the_chosen_model_is_trained_with_all_observations_and_its_errors_are_given(published):
    data = published("q5", 22)
    selection = select(data)
    assert selection.surrogate == selection.candidates["sqrt"] == fit("sqrt", data)
    assert selection.loocv["linear"] == loocv_rmse("linear", data)
    assert selection.extrapolation["linear"] == extrapolation_rmse("linear", data)
    assert selection.reason.startswith(
        "sqrt extrapolates best from the lower to the upper half of the slots: RMSE sqrt 78,199"
    )


def test_without_a_split_loocv_decides_and_says_so(published):
    selection = select(published("q1", 10))
    assert selection.extrapolation == {}
    assert selection.reason.startswith("sqrt has the smallest LOOCV error (sqrt 520,064, linear 592,943, log 705,460")


def test_two_slot_counts_cannot_tell_the_models_apart_so_the_simplest_is_taken():
    # Each model passes through the same two means, so their errors differ by rounding alone.
    data = Dataset(np.full(6, 8192.0), np.array([4, 4, 4, 8, 8, 8.0]), np.array([10, 11, 12, 20, 21, 22.0]) * 1e4)
    selection = select(data)
    assert selection.model == "linear"
    assert selection.reason.endswith(
        "linear and log and sqrt do not differ on these measurements; the first was taken."
    )


def test_a_model_that_falls_with_the_slots_is_not_chosen_unless_forced():
    falling = Dataset(MEMORY, SLOTS, 1e6 - 1e4 * SLOTS)
    with pytest.raises(Infeasible, match="MST falls as task slots are added"):
        select(falling)
    forced = select(falling, forced="linear")
    assert forced.surrogate.slots == pytest.approx(-1e4)
    assert "does not grow with the slots" in forced.reason


def test_an_unusable_candidate_is_named():
    # Falls late and steeply: the line falls, the logarithm still grows.
    data = Dataset(np.full(8, 8192.0), SLOTS, np.array([1.0, 9.0, 9.5, 9.6, 9.5, 8, 6, 1.5]) * 1e5)
    assert fit("linear", data).slots < 0 < fit("log", data).slots
    selection = select(data)
    assert selection.model != "linear"
    assert "Not usable, because the MST would not grow with the slots: linear" in selection.reason


@pytest.mark.parametrize(
    ("slots", "message"),
    [([4, 8, 16], "at least 4 observations, but got 3"), ([8, 8, 8, 8], "must differ in task slots, but all have 8")],
)
def test_too_little_to_choose_by_is_refused(slots, message):
    values = np.array(slots, dtype=float)
    with pytest.raises(InvalidInput, match=message):
        select(Dataset(np.full(len(slots), 8192.0), values, values), forced="linear")


def test_an_unknown_model_cannot_be_forced(published):
    with pytest.raises(InvalidInput, match="one of linear, log, sqrt, but got 'cubic'"):
        select(published("q5", 14), forced="cubic")
