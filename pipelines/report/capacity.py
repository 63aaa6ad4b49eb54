"""Capacity against demand for every operator."""

from dataclasses import dataclass

import plotly.graph_objects as go

from pipelines.report.style import NEUTRAL, PALETTE, layout
from pipelines.report.subject import ReportSubject


@dataclass(frozen=True)
class OperatorCapacity:
    """Records/s that arrive at an operator at the target rate, and its capacity under even load."""

    name: str
    demand: float
    capacity: float


def capacity_info(subject: ReportSubject) -> tuple[OperatorCapacity, ...]:
    """In topological order; capacity is tasks x true rate per task (StreamBed Eq. 2)."""
    scaling = subject.scaling
    return tuple(
        OperatorCapacity(
            name=name,
            demand=scaling.records_in_per_s[name],
            capacity=scaling.parallelism[name] * scaling.true_rate_per_task[name],
        )
        for name in subject.job.order
    )


def capacity_figure(info: tuple[OperatorCapacity, ...]) -> go.Figure:
    names = [o.name for o in info]
    figure = go.Figure(
        [
            go.Bar(name="demand at the target rate", x=names, y=[o.demand for o in info], marker_color=PALETTE[2]),
            go.Bar(name="capacity with even load", x=names, y=[o.capacity for o in info], marker_color=NEUTRAL),
        ]
    )
    figure.update_yaxes(type="log", title="records/s", exponentformat="SI")
    figure.update_layout(barmode="group")
    return layout(figure, "Capacity against demand")
