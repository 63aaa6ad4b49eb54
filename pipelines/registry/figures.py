"""Pictures of a selection for MLflow: observations -> typed info -> figure.

Figures are made with matplotlib's own classes, without pyplot and a browser, so that a stage needs no display and
changes no global state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE_POINTS = 100


@dataclass(frozen=True)
class MemoryCurve:
    """One memory level: what was measured with it, and what the model says. Rates in records/s."""

    memory_mb: float
    task_slots: tuple[int, ...]
    mst: tuple[float, ...]
    curve_slots: tuple[float, ...]
    curve_mst: tuple[float, ...]


@dataclass(frozen=True)
class FitInfo:
    """A capacity model among the measured points."""

    model: str
    curves: tuple[MemoryCurve, ...]


@dataclass(frozen=True)
class ResidualInfo:
    """Each measured MST beside what the model expects from all other observations, records/s."""

    model: str
    measured: tuple[float, ...]
    predicted: tuple[float, ...]

    @property
    def residuals(self) -> tuple[float, ...]:
        """Measured less predicted."""
        return tuple(m - p for m, p in zip(self.measured, self.predicted, strict=True))


@dataclass(frozen=True)
class ErrorInfo:
    """Leave-one-out error (RMSE, records/s) and weight of every candidate, in the same order."""

    laws: tuple[str, ...]
    loocv: tuple[float, ...]
    weights: tuple[float, ...]
    chosen: str


def fit_info(model: CapacityModel, dataset: Dataset) -> FitInfo:
    """The central curve of each memory level, from the fewest slots measured to a quarter more than the most."""
    slots = np.linspace(float(dataset.fewest_slots), 1.25 * dataset.most_slots, CURVE_POINTS)
    curves = []
    for memory_mb in np.unique(dataset.memory_mb):
        at = dataset.memory_mb == memory_mb
        curves.append(
            MemoryCurve(
                memory_mb=float(memory_mb),
                task_slots=tuple(int(s) for s in dataset.task_slots[at]),
                mst=tuple(float(y) for y in dataset.mst[at]),
                curve_slots=tuple(float(s) for s in slots),
                curve_mst=tuple(float(y) for y in model.predict(memory_mb, slots)),
            )
        )
    return FitInfo(model.name, tuple(curves))


def residual_info(selection: Selection, dataset: Dataset) -> ResidualInfo:
    return ResidualInfo(selection.model.name, tuple(float(y) for y in dataset.mst), selection.left_out)


def error_info(selection: Selection) -> ErrorInfo:
    weights, candidates = selection.model.weights, selection.candidates
    return ErrorInfo(
        laws=tuple(candidates),
        loocv=tuple(c.loocv_rmse for c in candidates.values()),
        weights=tuple(weights.get(law, 0.0) for law in candidates),
        chosen=selection.model.name,
    )


def fit_figure(info: FitInfo) -> "Figure":
    figure, axes = new_figure(f"Capacity model ({info.model}) and measured points")
    for curve in info.curves:
        (line,) = axes.plot(curve.curve_slots, curve.curve_mst, label=f"{curve.memory_mb:,.0f} MiB")
        axes.scatter(curve.task_slots, curve.mst, color=line.get_color())
    axes.set(xlabel="task slots", ylabel="maximal sustainable throughput, records/s", ylim=(0, None))
    axes.legend(title="TaskManager memory")
    return figure


def residual_figure(info: ResidualInfo) -> "Figure":
    figure, axes = new_figure(f"Leave-one-out residuals of the capacity model ({info.model})")
    axes.scatter(info.measured, info.residuals)
    axes.axhline(0.0, color="grey", linewidth=1)
    axes.xaxis.set_major_formatter(axes.yaxis.get_major_formatter())
    axes.set(xlabel="measured MST, records/s", ylabel="measured less predicted, records/s")
    return figure


def error_figure(info: ErrorInfo) -> "Figure":
    """Errors as bars, with the weights above them."""
    figure, axes = new_figure(f"Leave-one-out errors and weights of the growth laws; model: {info.chosen}")
    at = np.arange(len(info.laws))
    bars = axes.bar(at, info.loocv, 0.6)
    axes.bar_label(bars, [f"{weight:.0%}" for weight in info.weights])
    axes.set_xticks(at, info.laws)
    axes.set(ylabel="RMSE, records/s")
    return figure


def new_figure(title: str) -> tuple["Figure", "Axes"]:
    """One plot of rates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    axes.set_title(title)
    style_axes(axes)
    return figure, axes


def style_axes(axes: "Axes") -> None:
    """A light grid, and records/s with a prefix (2.5M)."""
    from matplotlib.ticker import EngFormatter

    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.grid(alpha=0.3)


def save_figures(folder: Path, figures: Mapping[str, "Figure"]) -> None:
    """Write each figure as a PNG under its name."""
    for name, figure in figures.items():
        figure.savefig(folder / name)
