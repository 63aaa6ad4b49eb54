"""The exploration's history: the measurements, and the candidates' prediction errors."""

from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pipelines.report.style import MODEL_COLOURS, layout, memory_colour
from pipelines.report.subject import ReportSubject


@dataclass(frozen=True)
class StepInfo:
    """One measurement, and the LOOCV error of each candidate after it, records/s; empty while too few are known."""

    index: int
    task_slots: int
    memory_mb: float
    mst: float
    suggested_by: str
    loocv: dict[str, float]


def exploration_info(subject: ReportSubject) -> tuple[StepInfo, ...]:
    return tuple(
        StepInfo(
            index=index,
            task_slots=step.budget.task_slots,
            memory_mb=step.budget.memory_mb,
            mst=step.mst,
            suggested_by=step.suggested_by,
            loocv=dict(step.loocv),
        )
        for index, step in enumerate(subject.exploration.steps)
    )


def exploration_figure(info: tuple[StepInfo, ...]) -> go.Figure:
    figure = make_subplots(
        rows=2,
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.12,
        subplot_titles=("Measured MST, records/s", "LOOCV error of each candidate, records/s"),
    )
    for order, memory in enumerate(sorted({s.memory_mb for s in info})):
        own = [s for s in info if s.memory_mb == memory]
        figure.add_trace(
            go.Scatter(
                x=[s.index for s in own],
                y=[s.mst for s in own],
                mode="markers+text",
                text=[str(s.task_slots) for s in own],
                textposition="top center",
                marker={"size": 10, "color": memory_colour(order), "line": {"width": 1, "color": "white"}},
                customdata=[s.suggested_by for s in own],
                hovertemplate="%{text} slots (%{customdata})<br>%{y:,.0f} records/s<extra></extra>",
                name=f"{memory:,.0f} MiB, labelled with its task slots",
            ),
            row=1,
            col=1,
        )
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
    figure.update_xaxes(title="measurement", row=2, col=1, dtick=1)
    figure.update_yaxes(exponentformat="SI", rangemode="tozero")
    figure.update_yaxes(range=[0, 1.2 * max(s.mst for s in info)], row=1, col=1)
    return layout(figure, "Exploration", height=560)
