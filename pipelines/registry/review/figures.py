"""Pictures of a review for MLflow: models and observations -> typed info -> figure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from pipelines.registry.figures import new_figure, style_axes
from pipelines.registry.review.record import SlotChange
from pipelines.registry.review.rule import Evidence

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE_POINTS: Final = 30
COLOURS: Final = {"challenger": "#0072B2", "champion": "#D55E00"}
MARKERS: Final = {"challenger": "o", "champion": "^"}


@dataclass(frozen=True)
class PredictedPoints:
    """What a model predicts for the unseen observations, in their order, records/s."""

    role: str
    label: str
    predicted: tuple[float, ...]


@dataclass(frozen=True)
class PredictedInfo:
    """Measured and predicted MST of the unseen observations, records/s."""

    measured: tuple[float, ...]
    contenders: tuple[PredictedPoints, ...]


@dataclass(frozen=True)
class GrowthCurve:
    """MST over task slots by one registered model; the interval is of one further measurement."""

    role: str
    label: str
    task_slots: tuple[float, ...]
    mst: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    planned_task_slots: int | None
    """With which it reaches the planned rate."""


@dataclass(frozen=True)
class GrowthInfo:
    """How both models grow, beside what was measured, and what the planned rate asks of them."""

    memory_mb: float
    planned_rate: float
    """Records/s, with the headroom where one was named."""
    curves: tuple[GrowthCurve, ...]
    measured_slots: tuple[float, ...]
    measured_mst: tuple[float, ...]


@dataclass(frozen=True)
class DrawnModel:
    """A model as it is registered."""

    role: str
    uri: str
    capacity: CapacityModel


def predicted_info(evidence: Evidence) -> PredictedInfo:
    contenders = [("challenger", evidence.challenger)]
    if evidence.champion is not None:
        contenders.append(("champion", evidence.champion))
    return PredictedInfo(
        measured=tuple(float(y) for y in evidence.held_out.mst),
        contenders=tuple(
            PredictedPoints(role, f"{role}: {c.selection.model}, RMSE {c.rmse:,.0f}", tuple(float(y) for y in c.mst))
            for role, c in contenders
        ),
    )


def growth_info(models: Sequence[DrawnModel], present: Dataset, slots: SlotChange) -> GrowthInfo:
    """Curves from the fewest slots measured to a fifth beyond the most of what was measured and what is planned."""
    wanted = [s for s in (slots.challenger, slots.champion) if s is not None]
    most = 1.2 * max(float(present.task_slots.max()), *wanted, 1.0)
    least = float(present.task_slots.min())
    at = np.unique(np.concatenate([np.geomspace(least, most, CURVE_POINTS), np.linspace(least, most, CURVE_POINTS)]))
    return GrowthInfo(
        memory_mb=slots.memory_mb,
        planned_rate=slots.margin.factor * slots.rate,
        curves=tuple(_curve(model, slots, at) for model in models),
        measured_slots=tuple(float(s) for s in present.task_slots),
        measured_mst=tuple(float(y) for y in present.mst),
    )


def _curve(model: DrawnModel, slots: SlotChange, at: "np.ndarray") -> GrowthCurve:
    low, mst, high = model.capacity.quantiles(slots.memory_mb, at, (0.025, 0.5, 0.975)).T
    return GrowthCurve(
        role=model.role,
        label=f"{model.role}: {model.capacity.name} ({model.uri})",
        task_slots=tuple(map(float, at)),
        mst=tuple(map(float, mst)),
        low=tuple(map(float, low)),
        high=tuple(map(float, high)),
        planned_task_slots=getattr(slots, model.role),
    )


def predicted_figure(info: PredictedInfo) -> "Figure":
    figure, axes = new_figure("Unseen observations: predicted against measured")
    for one in info.contenders:
        axes.scatter(
            info.measured, one.predicted, label=one.label, color=COLOURS[one.role], marker=MARKERS[one.role], alpha=0.8
        )
    values = [*info.measured, *(y for one in info.contenders for y in one.predicted)]
    ends = (min(values), max(values))
    axes.plot(ends, ends, color="grey", linewidth=1, label="exact")
    axes.xaxis.set_major_formatter(axes.yaxis.get_major_formatter())
    axes.set(xlabel="measured MST, records/s", ylabel="predicted MST, records/s")
    axes.legend()
    return figure


def growth_figure(info: GrowthInfo) -> "Figure":
    """What was measured at the left; at the right as far as plans reach."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 5))
    near, far = figure.subplots(
        1, 2, gridspec_kw={"left": 0.07, "right": 0.985, "bottom": 0.11, "top": 0.86, "wspace": 0.14}
    )
    figure.suptitle(f"Growth over the task slots at {info.memory_mb:,.0f} MiB per TaskManager, with 95 % intervals")
    measured = 1.2 * max(info.measured_slots)
    for axes, most in ((near, measured), (far, max(c.task_slots[-1] for c in info.curves))):
        style_axes(axes)
        for curve in info.curves:
            _draw(axes, curve, most)
        axes.scatter(info.measured_slots, info.measured_mst, s=14, color="black", zorder=3, label="measured")
        axes.set(xlabel="task slots", xlim=(0, most), ylim=(0, None))
    near.set(title="where it was measured", ylabel="maximal sustainable throughput, records/s")
    far.axhline(info.planned_rate, color="grey", linestyle="--", linewidth=1, label="planned rate")
    far.set(title="as far as the plan reaches")
    far.set_ylim(0, 1.6 * max(info.planned_rate, *info.measured_mst))
    far.legend(loc="lower right", fontsize="small")
    return figure


def _draw(axes: "Axes", curve: GrowthCurve, most: float) -> None:
    shown = [i for i, s in enumerate(curve.task_slots) if s <= most]
    slots = [curve.task_slots[i] for i in shown]
    colour = COLOURS[curve.role]
    planned = "" if curve.planned_task_slots is None else f", {curve.planned_task_slots:,} slots"
    axes.plot(slots, [curve.mst[i] for i in shown], color=colour, label=curve.label + planned)
    axes.fill_between(slots, [curve.low[i] for i in shown], [curve.high[i] for i in shown], color=colour, alpha=0.15)
    if curve.planned_task_slots is not None and curve.planned_task_slots <= most:
        axes.axvline(curve.planned_task_slots, color=colour, linestyle=":", linewidth=1)
