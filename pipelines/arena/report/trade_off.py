"""Latency against task-hours of each policy, and their Pareto front."""

from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from pipelines.arena.ranking import Standing
from pipelines.arena.report.curves import policy_colours
from pipelines.arena.report.time_figure import LEAST_LATENCY_S
from pipelines.report.style import NEUTRAL, layout


@dataclass(frozen=True)
class Point:
    policy: str
    task_hours: float
    latency_p95_s: float


@dataclass(frozen=True)
class TradeOff:
    """Policies by task-hours; those of the front are no worse in one and better in the other than any other."""

    points: tuple[Point, ...]
    front: tuple[Point, ...]


def trade_off(standings: Sequence[Standing]) -> TradeOff:
    """Policies without records to read are left out."""
    known = [Point(s.policy, s.task_hours, s.latency_p95_s) for s in standings if s.latency_p95_s is not None]
    points = sorted(known, key=lambda p: (p.task_hours, p.latency_p95_s))
    front: list[Point] = []
    for point in points:
        if not front or point.latency_p95_s < front[-1].latency_p95_s:
            front.append(point)
    return TradeOff(tuple(points), tuple(front))


def trade_off_figure(info: TradeOff, bound_s: float) -> go.Figure:
    """A trace's `meta` is its policy, as in the figure over time."""
    figure = go.Figure()
    figure.add_trace(
        go.Scatter(
            x=[p.task_hours for p in info.front], y=[_drawn(p) for p in info.front], mode="lines",
            line={"color": NEUTRAL, "width": 1.5, "shape": "hv"}, name="Pareto front", hoverinfo="skip",
        )
    )  # fmt: skip
    colours = policy_colours(p.policy for p in info.points)
    best = {p.policy for p in info.front}
    for index, point in enumerate(info.points):
        symbol = "circle" if point.policy in best else "circle-open"
        position = "bottom center" if index % 2 else "top center"
        _draw_policy(figure, point, colours[point.policy], symbol, position)
    figure.add_hline(y=bound_s, line={"color": NEUTRAL, "dash": "dash", "width": 1})
    figure.update_xaxes(title="task-hours", exponentformat="SI", range=_range([p.task_hours for p in info.points]))
    figure.update_yaxes(title="p95 latency, s", type="log", dtick=1)
    layout(figure, "", height=360)
    return figure.update_layout(title=None, showlegend=False, margin={"l": 60, "r": 12, "t": 16, "b": 48})


def _draw_policy(figure: go.Figure, point: Point, colour: str, symbol: str, position: str) -> None:
    shown = f"{point.policy}: p95 {point.latency_p95_s:,.1f} s, {point.task_hours:,.1f} task-hours"
    figure.add_trace(
        go.Scatter(
            x=[point.task_hours], y=[_drawn(point)], mode="markers+text", name=point.policy, meta=point.policy,
            text=[point.policy], textposition=position, textfont={"color": colour, "size": 12},
            marker={"size": 12, "color": colour, "symbol": symbol, "line": {"width": 2, "color": colour}},
            hovertext=[shown], hoverinfo="text",
        )
    )  # fmt: skip


def _drawn(point: Point) -> float:
    return max(point.latency_p95_s, LEAST_LATENCY_S)


def _range(values: Sequence[float]) -> list[float] | None:
    """Margin for the names beside the outermost points."""
    if not values:
        return None
    margin = 0.14 * (max(values) - min(values)) or 0.1 * max(values)
    return [min(values) - margin, max(values) + margin]
