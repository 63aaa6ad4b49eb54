"""The exploration's history: the measurements with what bounded each, the candidates' prediction errors, and how the answer's
interval closes."""

from dataclasses import dataclass
from typing import Final

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from models.capacity.diagnosis.bound_by import BoundBy, Cause
from models.capacity.sizing import SlotsInterval
from pipelines.report.style import MODEL_COLOURS, NEUTRAL, TARGET, layout, memory_colour
from pipelines.report.subject import ReportSubject

SYMBOLS: Final[dict[Cause, str]] = {
    "CPU": "circle",
    "hot key": "star",
    "key groups": "hexagon",
    "state reads": "square",
    "network": "diamond",
    "max parallelism": "triangle-up",
    "source partitions": "triangle-down",
    "rate limit": "octagon",
    "waiting": "cross",
    "unknown": "x",
}
"""Of what bounded a measurement."""
UNDIAGNOSED: Final = "circle-open"
"""Of published measurements, and of those of earlier versions."""


@dataclass(frozen=True)
class StepInfo:
    """One measurement, and what is known after it."""

    index: int
    task_slots: int
    memory_mb: float
    mst: float
    suggested_by: str
    loocv: dict[str, float]
    """LOOCV error of each candidate, records/s; empty while too few are known."""
    slots_needed: SlotsInterval | None
    """Task slots for the target rate; None where they were not asked for, or not known."""
    bound_by: BoundBy | None
    """What bounded the job; None where there are no facts to say it from."""

    @property
    def symbol(self) -> str:
        return UNDIAGNOSED if self.bound_by is None else SYMBOLS[self.bound_by.cause]


def exploration_info(subject: ReportSubject) -> tuple[StepInfo, ...]:
    explored = subject.exploration
    return tuple(
        StepInfo(
            index=index,
            task_slots=step.budget.task_slots,
            memory_mb=step.budget.memory_mb,
            mst=step.mst,
            suggested_by=step.suggested_by,
            loocv=dict(step.loocv),
            slots_needed=step.slots_needed,
            bound_by=observation.bound_by,
        )
        for index, (step, observation) in enumerate(zip(explored.steps, explored.observations, strict=True))
    )


def exploration_figure(info: tuple[StepInfo, ...]) -> go.Figure:
    titles = ["Measured MST, records/s", "LOOCV error of each candidate, records/s"]
    answered = [s for s in info if s.slots_needed is not None]
    if answered:
        titles.append("Task slots for the target rate, with their 95 % interval")
    figure = make_subplots(rows=len(titles), cols=1, shared_xaxes=True, vertical_spacing=0.12, subplot_titles=titles)
    for order, memory in enumerate(sorted({s.memory_mb for s in info})):
        own = [s for s in info if s.memory_mb == memory]
        figure.add_trace(
            go.Scatter(
                x=[s.index for s in own],
                y=[s.mst for s in own],
                mode="markers+text",
                text=[str(s.task_slots) for s in own],
                textposition="top center",
                marker={
                    "size": 10,
                    "symbol": [s.symbol for s in own],
                    "color": memory_colour(order),
                    "line": {"width": 1, "color": "white"},
                },
                customdata=[_said(s) for s in own],
                hovertemplate="%{text} slots (%{customdata})<br>%{y:,.0f} records/s<extra></extra>",
                name=f"{memory:,.0f} MiB, labelled with its task slots",
            ),
            row=1,
            col=1,
        )
    _add_causes(figure, info)
    for name in sorted({name for s in info for name in s.loocv}):
        known = [s for s in info if name in s.loocv]
        figure.add_trace(
            go.Scatter(
                x=[s.index for s in known],
                y=[s.loocv[name] for s in known],
                mode="lines+markers",
                line={"color": MODEL_COLOURS[name]},
                name=name,
            ),
            row=2,
            col=1,
        )
    if answered:
        _add_interval(figure, answered)
    figure.update_xaxes(title="measurement", row=len(titles), col=1, dtick=1)
    for row in (1, 2):
        figure.update_yaxes(exponentformat="SI", rangemode="tozero", row=row, col=1)
    figure.update_yaxes(range=[0, 1.2 * max(s.mst for s in info)], row=1, col=1)
    return layout(figure, "Exploration", height=280 * len(titles))


def _said(step: StepInfo) -> str:
    return step.suggested_by if step.bound_by is None else f"{step.suggested_by}, {step.bound_by.title}"


def _add_causes(figure: go.Figure, info: tuple[StepInfo, ...]) -> None:
    """The legend of the symbols, without points."""
    present = {s.bound_by.cause for s in info if s.bound_by is not None}
    for cause, symbol in SYMBOLS.items():
        if cause in present:
            marker = {"size": 10, "symbol": symbol, "color": NEUTRAL}
            name = "bound by an unknown cause" if cause == "unknown" else f"bound by {cause}"
            figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", marker=marker, name=name), row=1, col=1)


def _add_interval(figure: go.Figure, answered: list[StepInfo]) -> None:
    """The interval after each measurement in the third row; no upper line where there is no upper end."""
    ends = (("low", "lower end", NEUTRAL), ("value", "task slots", TARGET), ("high", "upper end", NEUTRAL))
    for field, name, colour in ends:
        figure.add_trace(
            go.Scatter(
                x=[s.index for s in answered],
                y=[getattr(s.slots_needed, field) for s in answered],
                mode="lines+markers",
                line={"color": colour},
                name=name,
            ),
            row=3,
            col=1,
        )
    figure.update_yaxes(type="log", row=3, col=1)
