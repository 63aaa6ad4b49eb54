"""Fitting a capacity model: every growth law, weighed by how well it predicts observations that it has not seen.

LOOCV decides (StreamBed section 6), but the weights of the laws instead of a winner: stacking of their leave-one-out
densities (`growth.stacking`). A twin joins the laws as one more candidate. A law that is asked for is taken alone:
StreamBed's regressions as the paper fits them, by least squares, so that they give its figures; the others by their
curves.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from pydantic import Field

from models.capacity.growth.capacity_model import STACKED, CapacityModel, Weighted
from models.capacity.growth.curves import LawCurves, draw
from models.capacity.growth.dataset import Array, Dataset
from models.capacity.growth.posterior import Posterior, posterior, reference_memory_mb
from models.capacity.growth.regressions import REGRESSIONS, fit_regression, loocv_predictions, rmse
from models.capacity.growth.shapes import LAWS, Extent, LawName, log_growth, shapes_of
from models.capacity.growth.stacking import stacking_weights
from models.capacity.growth.twin import TWIN, TwinCurve, fit_twin
from models.errors import Infeasible, InvalidInput
from models.schema import Format, NonNegative, Ratio
from models.wording import amount

FEWEST_OBSERVATIONS: Final = 3
LEAST_WEIGHT: Final = 1e-3
"""Candidates with less are left out of the model."""
SHARES: Final[Mapping[str, float]] = {"even": 3.0, TWIN: float(len(LAWS) + 2)}
"""Weights beforehand, relative to those of other laws: load is even more often than not, and a twin knows how the job works,
so that it has as much as all laws together."""
MOST_FALL: Final = 0.1
"""Share by which the MST may fall over the measured slots before it is said to; less is noise."""


class Candidate(Format):
    """How well a law predicts each observation from all others, and how much it counts."""

    weight: Ratio
    loocv_rmse: NonNegative = Field(description="Records/s.")
    log_density: float = Field(
        description="Sum over the observations of the log density of log MST.", allow_inf_nan=False
    )


class Selection(Format):
    """The capacity model, and how its candidates did."""

    model: CapacityModel
    candidates: dict[str, Candidate]
    left_out: tuple[float, ...] = Field(
        description="What the model expects of each observation from all others, records/s."
    )
    loocv_rmse: NonNegative = Field(description="Of the model, records/s.")
    reason: str


def select(data: Dataset, forced: str | None = None, twin: TwinCurve | None = None) -> Selection:
    """Fit all laws and weigh them, or take the forced one.

    Args:
        twin: what a twin of the job predicts, to be weighed with the laws.

    Raises:
        InvalidInput: too few observations, all with the same number of slots, or an unknown law.
        Infeasible: the MST falls as slots are added.
    """
    if forced is not None and forced not in LAWS:
        raise InvalidInput(f"a model must be one of {', '.join(LAWS)}, but got {forced!r}")
    check_selectable(data)
    if forced not in REGRESSIONS:
        _check_growth(data)
    fitted = {law: _fit_law(law, data) for law in LAWS} | ({} if twin is None else {TWIN: fit_twin(twin, data)})
    names, found = list(fitted), [posterior for posterior, _ in fitted.values()]
    weights = _weights(found, [SHARES.get(name, 1.0) for name in names])
    candidates = {name: _candidate(f, w, data) for name, f, w in zip(names, found, weights, strict=True)}
    if forced in REGRESSIONS:
        return _forced_regression(data, forced, candidates)
    if forced is not None:
        weights = np.array([float(name == forced) for name in names])
    counted = [(float(w), curves) for w, (_, curves) in zip(weights, fitted.values(), strict=True) if w > 0]
    left_out = np.exp(weights @ np.stack([f.left_out for f in found]))
    return Selection(
        model=CapacityModel(components=tuple(Weighted(weight=w, predicts=curves) for w, curves in counted)),
        candidates=candidates,
        left_out=tuple(map(float, left_out)),
        loocv_rmse=rmse(left_out, data.mst),
        reason=_reason(candidates, forced),
    )


def _fit_law(law: LawName, data: Dataset) -> tuple[Posterior, LawCurves]:
    extent = Extent(data.fewest_slots, data.most_slots)
    shapes = shapes_of(law, extent)
    found = posterior(data, log_growth(law, shapes, data.task_slots, extent))
    return found, draw(law, shapes, found, extent, reference_memory_mb(data))


def check_selectable(data: Dataset) -> None:
    """Are there enough observations to fit a model to?"""
    if len(data) < FEWEST_OBSERVATIONS:
        raise InvalidInput(
            f"a capacity model needs at least {FEWEST_OBSERVATIONS} observations, but got {len(data)}; measure "
            "more budgets, the fewest and the most task slots that there are first"
        )
    if np.ptp(data.task_slots) == 0:
        raise InvalidInput(
            f"the observations must differ in task slots, but all have {data.task_slots[0]:g}; measure another number, "
            "such as the most that there are"
        )


def _check_growth(data: Dataset) -> None:
    """Does the MST grow? By the median of the slopes between all pairs of observations (Theil and Sen), which outliers
    leave alone."""
    slots, mst = np.log(data.task_slots), np.log(data.mst)
    first, second = np.nonzero(slots[:, None] < slots[None, :])
    slope = float(np.median((mst[second] - mst[first]) / (slots[second] - slots[first])))
    fewest, most = data.fewest_slots, data.most_slots
    change = slope * np.log(most / fewest)
    if change < np.log(1 - MOST_FALL):
        at = {n: float(np.median(data.mst[data.task_slots == n])) for n in (fewest, most)}
        raise Infeasible(
            f"the MST falls as task slots are added, by {1 - np.exp(change):.0%} from {fewest} to {most} of them "
            f"({amount(at[fewest])} and {amount(at[most])} records/s), so no number of slots can be derived; measure both "
            "again, and a number between them"
        )


def _weights(found: Sequence[Posterior], shares: Sequence[float]) -> Array:
    weights = stacking_weights(np.stack([f.log_density for f in found], axis=1), np.array(shares) / sum(shares))
    weights = np.where(weights < LEAST_WEIGHT, 0.0, weights)
    return np.asarray(weights / weights.sum())


def _candidate(found: Posterior, weight: float, data: Dataset) -> Candidate:
    return Candidate(
        weight=float(weight),
        loocv_rmse=rmse(np.exp(found.left_out), data.mst),
        log_density=float(found.log_density.sum()),
    )


def _forced_regression(data: Dataset, law: str, candidates: Mapping[str, Candidate]) -> Selection:
    regression, left_out = fit_regression(law, data), loocv_predictions(law, data)
    if regression.residual_variance is None:
        raise InvalidInput(
            f"a regression needs more observations than its {len(data) - regression.degrees_of_freedom} coefficients, but got "
            f"{len(data)}; measure at least one more budget"
        )
    error = rmse(left_out, data.mst)
    warning = "" if regression.slots > 0 else " Its MST does not grow with the slots, so it cannot be sized with."
    return Selection(
        model=CapacityModel.of(regression),
        candidates=dict(candidates),
        left_out=tuple(map(float, left_out)),
        loocv_rmse=error,
        reason=f"{law} was asked for (LOOCV RMSE {amount(error)} records/s).{warning}",
    )


def _reason(candidates: Mapping[str, Candidate], forced: str | None) -> str:
    if forced is not None:
        return f"{forced} was asked for (LOOCV RMSE {amount(candidates[forced].loocv_rmse)} records/s)."
    ranked = sorted(candidates, key=lambda law: -candidates[law].weight)
    shares = ", ".join(f"{law} {candidates[law].weight:.0%}" for law in ranked if candidates[law].weight >= 0.005)
    each = "each growth law and the twin predict" if TWIN in candidates else "each growth law predicts"
    return f"{STACKED} by how well {each} the observations left out: {shares}."
