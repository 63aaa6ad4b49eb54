"""Which surrogate to plan with (StreamBed section 6, model selection).

The rule: of the usable candidates, the one with the smallest extrapolation error, that is the RMSE in the upper half of
the observations (by task slots) of the model trained with the lower half. LOOCV guides the search for budgets; it
decides here only where the extrapolation errors are equal (to a billionth of the highest MST), or where they tell
nothing, because the lower half does not span a factor of 2 in slots (`extrapolation_tells`). What is still equal goes to
the first of linear, log, sqrt. Usable is a candidate whose MST grows with the slots (b > 0): no other can be solved for a
number of slots. The chosen model is trained with all observations.

A forced choice skips the rule, but keeps all candidates' errors.
"""

from typing import Final

import numpy as np

from models.capacity.surrogates import (
    SURROGATES,
    Dataset,
    Surrogate,
    SurrogateName,
    extrapolation_rmse,
    extrapolation_tells,
    fit,
    loocv_rmse,
)
from models.errors import Infeasible, InvalidInput
from models.schema import Format, NonNegative
from models.wording import amount

FEWEST_OBSERVATIONS: Final = 4
"""One more than a surrogate has coefficients, so that its error can be estimated."""
_EQUAL: Final = 1e-9
"""Two errors are equal up to this share of the highest MST."""


class Selection(Format):
    """The chosen surrogate with the errors of all candidates, records/s."""

    model: SurrogateName
    surrogate: Surrogate
    candidates: dict[str, Surrogate]
    loocv: dict[str, NonNegative]
    extrapolation: dict[str, NonNegative]
    """Empty where the observations cannot be split into a lower and an upper half."""
    reason: str


def select(data: Dataset, forced: str | None = None) -> Selection:
    """Choose by the rule above, or take the forced model.

    Raises:
        InvalidInput: too few observations, all with the same number of slots, or an unknown forced model.
        Infeasible: no candidate's MST grows with the slots.
    """
    check_selectable(data)
    candidates: dict[str, Surrogate] = {name: fit(name, data) for name in SURROGATES}
    loocv: dict[str, float] = {name: loocv_rmse(name, data) for name in SURROGATES}
    errors = {name: extrapolation_rmse(name, data) for name in SURROGATES}
    extrapolation: dict[str, float] = {name: error for name, error in errors.items() if error is not None}
    if forced is not None:
        if forced not in candidates:
            raise InvalidInput(f"a model must be one of {', '.join(SURROGATES)}, but got {forced!r}")
        model, reason = candidates[forced].name, _forced_reason(candidates[forced], loocv, extrapolation)
    else:
        telling = extrapolation if extrapolation_tells(data) else {}
        model, reason = _choose(candidates, loocv, telling, rounding=_EQUAL * float(data.mst.max()))
    return Selection(
        model=model,
        surrogate=candidates[model],
        candidates=candidates,
        loocv=loocv,
        extrapolation=extrapolation,
        reason=reason,
    )


def check_selectable(data: Dataset) -> None:
    """Are there enough observations to choose a model by?"""
    if len(data) < FEWEST_OBSERVATIONS:
        raise InvalidInput(
            f"choosing a model needs at least {FEWEST_OBSERVATIONS} observations, but got {len(data)}; "
            "measure more budgets"
        )
    if np.ptp(data.task_slots) == 0:
        raise InvalidInput(
            f"the observations must differ in task slots, but all have {data.task_slots[0]:g}; measure another number"
        )


def _choose(
    candidates: dict[str, Surrogate], loocv: dict[str, float], extrapolation: dict[str, float], rounding: float
) -> tuple[SurrogateName, str]:
    """The candidate to take by the rule, and why."""
    usable = [name for name in SURROGATES if candidates[name].slots > 0]
    if not usable:
        raise Infeasible(
            "in every candidate model the MST falls as task slots are added, so no number of slots can be derived; "
            "measure more budgets, or repeat those whose MST looks too low"
        )
    leading = _smallest(usable, extrapolation, rounding) if extrapolation else usable
    best = _smallest(leading, loocv, rounding)
    if not extrapolation:
        reason = (
            f"{best[0]} has the smallest LOOCV error ({_listed(usable, loocv)}); the observations with few slots are too "
            "alike to show how the models extrapolate."
        )
    else:
        reason = (
            f"{best[0]} extrapolates best from the lower to the upper half of the slots: "
            f"RMSE {_listed(usable, extrapolation)}."
        )
    if len(best) > 1:
        reason += f" {' and '.join(best)} do not differ on these measurements; the first was taken."
    elif extrapolation and len(leading) > 1:
        reason += f" {' and '.join(leading)} are equal there; the LOOCV error decided."
    refused = [name for name in SURROGATES if name not in usable]
    if refused:
        reason += f" Not usable, because the MST would not grow with the slots: {', '.join(refused)}."
    return best[0], reason


def _smallest(names: list[SurrogateName], errors: dict[str, float], rounding: float) -> list[SurrogateName]:
    """The names with the smallest error, in the given order."""
    least = min(errors[name] for name in names)
    return [name for name in names if errors[name] <= least + rounding]


def _forced_reason(surrogate: Surrogate, loocv: dict[str, float], extrapolation: dict[str, float]) -> str:
    name = surrogate.name
    error = f", extrapolation RMSE {amount(extrapolation[name])}" if extrapolation else ""
    warning = "" if surrogate.slots > 0 else " Its MST does not grow with the slots, so it cannot be sized with."
    return f"{name} was asked for (LOOCV RMSE {amount(loocv[name])}{error}).{warning}"


def _listed(names: list[SurrogateName], errors: dict[str, float]) -> str:
    ranked = sorted(names, key=errors.__getitem__)
    return ", ".join(f"{name} {amount(errors[name])}" for name in ranked) + " records/s"
