"""Fitting a capacity model: every growth law, weighed by how well it predicts observations that it has not seen.

LOOCV decides (StreamBed section 6), but the weights of the laws instead of a winner: stacking of their leave-one-out
densities (`growth.stacking`). A twin joins the laws as one more candidate. A law that is asked for is taken alone:
StreamBed's regressions as the paper fits them, by least squares, so that they give its figures; the others by their
curves.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from pydantic import Field

from models.capacity.growth.capacity_model import STACKED, CapacityModel, Weighted
from models.capacity.growth.curves import LawCurves, draw
from models.capacity.growth.dataset import Array, Dataset
from models.capacity.growth.posterior import Posterior, posterior, reference_memory_mb
from models.capacity.growth.regressions import REGRESSIONS, fit_regression, loocv_predictions, rmse
from models.capacity.growth.shapes import LAWS, Extent, LawName, log_growth, shapes_of
from models.capacity.growth.stacking import StackingMoments, stacking_moments
from models.capacity.growth.twin import TWIN, TwinCurve, TwinCurves, fit_twin
from models.errors import Infeasible, InvalidInput
from models.schema import Format, NonNegative, Ratio
from models.wording import amount

FEWEST_OBSERVATIONS: Final = 3
LEAST_WEIGHT: Final = 1e-3
"""Candidates with less are left out of the model."""
SHARES: Final[Mapping[str, float]] = {"even": 3.0, TWIN: 30.0}
"""Weights beforehand, relative to those of other laws: load is even more often than not, and a twin knows how the job works,
which laws can only guess. The measurements count against it where they contradict it."""
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


@dataclass(frozen=True)
class Stack:
    """Every candidate fitted, and what is known of their weights."""

    posteriors: Mapping[str, Posterior]
    curves: Mapping[str, LawCurves | TwinCurves]
    moments: StackingMoments
    """Of the weights, in the order of the candidates."""

    @property
    def weights(self) -> Array:
        """Of each candidate, (candidates,); 0 for those with less than LEAST_WEIGHT."""
        return _clear(self.moments.mean)

    @property
    def left_out_weights(self) -> Array:
        """The same without each observation, (n, candidates)."""
        return _clear(self.moments.left_out)

    def model(self, weights: Array | None = None) -> CapacityModel:
        """All candidates with a weight; those of the stack if none are given."""
        weighted = zip(self.weights if weights is None else weights, self.curves.values(), strict=True)
        return CapacityModel(components=tuple(Weighted(weight=float(w), predicts=c) for w, c in weighted if w > 0))


def _clear(weights: Array) -> Array:
    kept = np.where(weights < LEAST_WEIGHT, 0.0, weights)
    return np.asarray(kept / kept.sum(axis=-1, keepdims=True))


def stack(data: Dataset, twin: TwinCurve | None = None) -> Stack:
    """Fit all laws, and the twin if there is one, and weigh them.

    Raises:
        InvalidInput: too few observations, or all with the same number of slots.
        Infeasible: the MST falls as slots are added.
    """
    check_selectable(data)
    _check_growth(data)
    return _stacked(data, twin)


def _stacked(data: Dataset, twin: TwinCurve | None) -> Stack:
    fitted = {law: _fit_law(law, data) for law in LAWS} | ({} if twin is None else {TWIN: fit_twin(twin, data)})
    shares = np.array([SHARES.get(name, 1.0) for name in fitted])
    densities = np.stack([found.log_density for found, _ in fitted.values()], axis=1)
    return Stack(
        posteriors={name: found for name, (found, _) in fitted.items()},
        curves={name: curves for name, (_, curves) in fitted.items()},
        moments=stacking_moments(densities, shares / shares.sum()),
    )


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
    fitted = _stacked(data, twin)
    weights = fitted.weights
    candidates = {
        name: _candidate(found, weight, data)
        for (name, found), weight in zip(fitted.posteriors.items(), weights, strict=True)
    }
    if forced in REGRESSIONS:
        return _forced_regression(data, forced, candidates)
    left_out_weights = fitted.left_out_weights
    if forced is not None:
        weights = np.array([float(name == forced) for name in fitted.posteriors])
        left_out_weights = np.tile(weights, (len(data), 1))
    predicted = np.stack([found.left_out for found in fitted.posteriors.values()], axis=1)
    left_out = np.exp((left_out_weights * predicted).sum(axis=1))
    return Selection(
        model=fitted.model(weights),
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
