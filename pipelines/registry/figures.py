"""Pictures of a selection for MLflow: observations -> typed info -> figure.

Figures are made with matplotlib's own classes, without pyplot and a browser, so that a stage needs no display and
changes no global state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from models.capacity.surrogates import Dataset, fit, loocv_predictions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVE_POINTS = 100


@dataclass(frozen=True)
class MemoryCurve:
    """One memory level: what was measured with it, and what the surrogate says. Rates in records/s."""

    memory_mb: float
    task_slots: tuple[int, ...]
    mst: tuple[float, ...]
    curve_slots: tuple[float, ...]
    curve_mst: tuple[float, ...]


@dataclass(frozen=True)
class FitInfo:
    """A fitted surrogate among the measured points."""

    model: str
    curves: tuple[MemoryCurve, ...]


@dataclass(frozen=True)
class ResidualInfo:
    """Each measured MST beside what a surrogate fitted on all other observations predicts, records/s."""

    model: str
    measured: tuple[float, ...]
    predicted: tuple[float, ...]

    @property
    def residuals(self) -> tuple[float, ...]:
        """Measured less predicted."""
        return tuple(m - p for m, p in zip(self.measured, self.predicted, strict=True))


@dataclass(frozen=True)
class ErrorInfo:
    """Errors of every candidate, RMSE in records/s, in the same order."""

    models: tuple[str, ...]
    loocv: tuple[float, ...]
    extrapolation: tuple[float, ...] | None
    """None where the observations could not be split."""
    chosen: str


def fit_info(model: str, dataset: Dataset) -> FitInfo:
    """The curve of each memory level, from one task slot to a quarter more than were measured."""
    surrogate = fit(model, dataset)
    slots = np.linspace(1.0, 1.25 * float(dataset.task_slots.max()), CURVE_POINTS)
    curves = []
    for memory_mb in np.unique(dataset.memory_mb):
        at = dataset.memory_mb == memory_mb
        mst = surrogate.predict(np.full_like(slots, memory_mb), slots)
        curves.append(
            MemoryCurve(
                memory_mb=float(memory_mb),
                task_slots=tuple(int(s) for s in dataset.task_slots[at]),
                mst=tuple(float(y) for y in dataset.mst[at]),
                curve_slots=tuple(float(s) for s in slots),
                curve_mst=tuple(float(y) for y in np.asarray(mst)),
            )
        )
    return FitInfo(model, tuple(curves))


def residual_info(model: str, dataset: Dataset) -> ResidualInfo:
    predicted = loocv_predictions(model, dataset)
    return ResidualInfo(model, tuple(float(y) for y in dataset.mst), tuple(float(y) for y in predicted))


def error_info(loocv: Mapping[str, float], extrapolation: Mapping[str, float], chosen: str) -> ErrorInfo:
    models = tuple(loocv)
    beyond = tuple(extrapolation[m] for m in models) if extrapolation else None
    return ErrorInfo(models, tuple(loocv[m] for m in models), beyond, chosen)


def fit_figure(info: FitInfo) -> "Figure":
    figure, axes = new_figure(f"Surrogate '{info.model}' and measured points")
    for curve in info.curves:
        (line,) = axes.plot(curve.curve_slots, curve.curve_mst, label=f"{curve.memory_mb:,.0f} MiB")
        axes.scatter(curve.task_slots, curve.mst, color=line.get_color())
    axes.set(xlabel="task slots", ylabel="maximal sustainable throughput, records/s", ylim=(0, None))
    axes.legend(title="TaskManager memory")
    return figure


def residual_figure(info: ResidualInfo) -> "Figure":
    figure, axes = new_figure(f"Leave-one-out residuals of '{info.model}'")
    axes.scatter(info.measured, info.residuals)
    axes.axhline(0.0, color="grey", linewidth=1)
    axes.xaxis.set_major_formatter(axes.yaxis.get_major_formatter())
    axes.set(xlabel="measured MST, records/s", ylabel="measured less predicted, records/s")
    return figure


def error_figure(info: ErrorInfo) -> "Figure":
    figure, axes = new_figure(f"Errors of the candidates; chosen: '{info.chosen}'")
    at = np.arange(len(info.models))
    axes.bar(at - 0.2, info.loocv, 0.4, label="leave one out")
    if info.extrapolation is not None:
        axes.bar(at + 0.2, info.extrapolation, 0.4, label="lower half to upper half")
    axes.set_xticks(at, info.models)
    axes.set(ylabel="RMSE, records/s")
    axes.legend()
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
