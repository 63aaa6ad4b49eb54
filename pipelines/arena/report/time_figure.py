"""One job and workload over time: a line for each policy, rescales marked."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pipelines.arena.report.curves import INPUT, Curves, policy_colours
from pipelines.report.style import NEUTRAL, layout

LEAST_LATENCY_S: Final = 0.1
"""Lower end of the logarithmic latency axis; smaller values are drawn there."""
HOVER_WIDTH: Final = 42
"""Characters per line of a mark's text; fits a phone."""


@dataclass(frozen=True)
class PlotRow:
    """One of the stacked plots: its values, and how a step between two points is drawn."""

    curve: str
    title: str
    shape: str
    unit: str
    logarithmic: bool = False


ROWS: Final = (
    PlotRow("capacity", "Rate (colour of the text) and capacity, records/s", "vh", "records/s"),
    PlotRow("tasks", "Tasks; dot: a rescale, cross: one refused", "vh", "tasks"),
    PlotRow("memory_gib", "Memory of all tasks, GiB", "vh", "GiB"),
    PlotRow("latency_s", "Latency, s: how long the next record has waited", "linear", "s", logarithmic=True),
    PlotRow("lag_records", "Lag: records that wait", "linear", "records"),
)


def time_figure(replays: Sequence[Curves], bound_s: float) -> go.Figure:
    """Rate against capacity, tasks, memory, latency and lag, on one time axis.

    A trace's `meta` is its policy, by which the page switches it on and off.

    Args:
        bound_s: bound on the latency, seconds.
    """
    figure = make_subplots(
        rows=len(ROWS), cols=1, shared_xaxes=True, vertical_spacing=0.045, subplot_titles=[r.title for r in ROWS]
    )
    figure.update_annotations(x=0.0, xanchor="left", align="left")
    colours = policy_colours(replay.policy for replay in replays)
    for replay in replays:
        for number, row in enumerate(ROWS, start=1):
            _draw_curve(figure, replay, row, number, colours[replay.policy])
        _draw_marks(figure, replay, colours[replay.policy])
    _draw_rate(figure, replays[0])
    latency = 1 + [row.curve for row in ROWS].index("latency_s")
    figure.add_hline(y=bound_s, line={"color": NEUTRAL, "dash": "dash", "width": 1}, row=latency, col=1)
    _set_axes(figure, replays)
    layout(figure, "", height=190 * len(ROWS) + 60)
    return figure.update_layout(
        title=None, showlegend=False, margin={"l": 48, "r": 8, "t": 28, "b": 44}, hoverlabel={"align": "left"}
    )


def _draw_rate(figure: go.Figure, replay: Curves) -> None:
    figure.add_trace(
        go.Scatter(
            x=replay.minutes, y=replay.rate, mode="lines", name="rate", line={"color": INPUT, "width": 1.5},
            fill="tozeroy", fillcolor="rgba(15, 23, 42, 0.06)",
            hovertemplate="rate at %{x:.1f} min: %{y:,.0f} records/s<extra></extra>",
        ),
        row=1, col=1,
    )  # fmt: skip


def _draw_curve(figure: go.Figure, replay: Curves, row: PlotRow, number: int, colour: str) -> None:
    values = getattr(replay, row.curve)
    figure.add_trace(
        go.Scatter(
            x=replay.minutes, y=np.maximum(values, LEAST_LATENCY_S) if row.logarithmic else values,
            mode="lines", name=replay.policy, meta=replay.policy,
            line={"color": colour, "width": 1.6, "shape": row.shape},
            hovertemplate=f"{replay.policy} at %{{x:.1f}} min: %{{y:,.4~r}} {row.unit}<extra></extra>",
        ),
        row=number, col=1,
    )  # fmt: skip


def _draw_marks(figure: go.Figure, replay: Curves, colour: str) -> None:
    texts = [f"<b>{replay.policy}</b> at {m.minute:.1f} min: {m.text}" for m in replay.marks]
    figure.add_trace(
        go.Scatter(
            x=[m.minute for m in replay.marks], y=[m.tasks for m in replay.marks], mode="markers",
            name=f"{replay.policy}: rescales", meta=replay.policy,
            marker={"color": colour, "size": 7, "line": {"color": "white", "width": 1},
                    "symbol": ["x" if m.refused else "circle" for m in replay.marks]},
            hovertext=["<br>".join(textwrap.wrap(text, HOVER_WIDTH)) for text in texts], hoverinfo="text",
        ),
        row=1 + [r.curve for r in ROWS].index("tasks"), col=1,
    )  # fmt: skip


def _set_axes(figure: go.Figure, replays: Sequence[Curves]) -> None:
    figure.update_yaxes(exponentformat="SI", rangemode="tozero", nticks=5)
    figure.update_xaxes(range=[0, max(float(r.minutes[-1]) for r in replays)], showgrid=True)
    figure.update_xaxes(title="minutes since the start", row=len(ROWS), col=1)
    for number, row in enumerate(ROWS, start=1):
        if row.logarithmic:
            figure.update_yaxes(type="log", dtick=1, row=number, col=1)
