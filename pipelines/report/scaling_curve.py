"""The fitted curve: MST against task slots, with the measured points, the interval, and the plan."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from pipelines.report.style import NEUTRAL, PALETTE, TARGET, layout, memory_colour
from pipelines.report.subject import ReportSubject

CURVE_POINTS = 40


@dataclass(frozen=True)
class CurvePoint:
    """Task slots, and the MST predicted for them, records/s, with its interval."""

    task_slots: int
    mst: float
    low: float
    high: float


@dataclass(frozen=True)
class MeasuredPoint:
    task_slots: int
    memory_mb: float
    mst: float


@dataclass(frozen=True)
class CurveInfo:
    model: str
    memory_mb: float
    curve: tuple[CurvePoint, ...]
    measured: tuple[MeasuredPoint, ...]
    target_rate: float
    planned_rate: float
    planned_task_slots: int


def curve_info(subject: ReportSubject) -> CurveInfo:
    """The curve at the planned memory, from the fewest slots measured to a fifth beyond the plan."""
    plan, model, budget = subject.plan, subject.capacity, subject.scaling.budget
    fewest = min(o.task_slots for o in subject.exploration.observations)
    most = max(budget.task_slots, *(o.task_slots for o in subject.exploration.observations))
    slots = sorted({round(float(s)) for s in np.linspace(fewest, 1.2 * most, CURVE_POINTS)})
    quantiles = model.quantiles(budget.memory_mb, slots, (0.025, 0.5, 0.975))
    return CurveInfo(
        model=model.name,
        memory_mb=budget.memory_mb,
        curve=tuple(
            CurvePoint(s, *map(float, (mst, low, high))) for s, (low, mst, high) in zip(slots, quantiles, strict=True)
        ),
        measured=tuple(MeasuredPoint(o.task_slots, o.memory_mb, o.mst) for o in subject.exploration.observations),
        target_rate=plan.target_rate,
        planned_rate=plan.target_rate if plan.risk is not None else plan.headroom * plan.target_rate,
        planned_task_slots=budget.task_slots,
    )


def curve_figure(info: CurveInfo) -> go.Figure:
    slots = [p.task_slots for p in info.curve]
    figure = go.Figure(
        [
            go.Scatter(
                x=[*slots, *reversed(slots)],
                y=[*(p.high for p in info.curve), *(p.low for p in reversed(info.curve))],
                fill="toself",
                fillcolor=NEUTRAL,
                opacity=0.25,
                line={"width": 0},
                name="95 % interval",
                hoverinfo="skip",
            ),
            go.Scatter(x=slots, y=[p.mst for p in info.curve], name=f"{info.model} model", line={"color": PALETTE[0]}),
        ]
    )
    for index, memory in enumerate(sorted({p.memory_mb for p in info.measured})):
        points = [p for p in info.measured if p.memory_mb == memory]
        figure.add_trace(
            go.Scatter(
                x=[p.task_slots for p in points],
                y=[p.mst for p in points],
                mode="markers",
                marker={
                    "size": 9,
                    "color": memory_colour(index),
                    "line": {"width": 1, "color": "white"},
                },
                name=f"measured, {memory:,.0f} MiB",
            )
        )
    # One label below its line and one above, since the lines are close.
    lines = [(info.target_rate, "dot", "target rate", "bottom right")]
    if info.planned_rate != info.target_rate:
        lines.append((info.planned_rate, "dash", "with headroom", "top right"))
    for rate, dash, label, position in lines:
        figure.add_hline(
            y=rate, line={"color": TARGET, "dash": dash}, annotation_text=label, annotation_position=position
        )
    figure.add_vline(
        x=info.planned_task_slots,
        line={"color": TARGET, "width": 1},
        annotation_text=f"{info.planned_task_slots} slots",
    )
    figure.update_xaxes(title="task slots")
    figure.update_yaxes(title="MST, records/s", exponentformat="SI", rangemode="tozero")
    return layout(figure, f"Scaling curve at {info.memory_mb:,.0f} MiB per TaskManager", height=480)
