"""The figures of a job's page: rate, lag, tasks, and price."""

import json
from collections.abc import Sequence
from typing import Any, Final

import plotly.graph_objects as go

from pipelines.control.record import Done
from pipelines.pages.autopilot.series import AutopilotSeries, ForecastBand, RescaleMark, TimeSeries
from pipelines.report.style import NEUTRAL, PALETTE, TARGET, layout
from pipelines.store.pictures import Pictures

HEIGHT: Final = 340
FORECAST: Final = "#94a3b8"
MARKS: Final[dict[Done, tuple[str, str]]] = {
    "rescaled": ("triangle-up", "#059669"),
    "dry-run": ("triangle-up-open", "#475569"),
    "refused": ("x", "#d97706"),
    "failed": ("x", "#dc2626"),
    "rolled-back": ("triangle-down", "#dc2626"),
}
"""Outcome of a rescale -> symbol and colour of its mark."""


def autopilot_pictures(series: AutopilotSeries) -> Pictures:
    """The figures as plotly.js draws them; those of what is unknown are left out."""
    drawn = {
        "rate": rate_figure(series),
        "lag": lag_figure(series) if series.lag_s.is_known else None,
        "tasks": tasks_figure(series) if series.tasks else None,
        "budget": budget_figure(series) if series.budget_spent.is_known else None,
        "price": price_figure(series) if series.price.is_known else None,
    }
    return Pictures(figures={name: _plain(figure) for name, figure in drawn.items() if figure is not None})


def rate_figure(series: AutopilotSeries) -> go.Figure:
    """Records/s that arrive and are read, the forecast band, and what the tasks can take."""
    figure = go.Figure([_band(band, number == 0) for number, band in enumerate(series.bands)])
    for one, colour, dash in (
        (series.capacity, PALETTE[1], "dash"),
        (series.read, PALETTE[2], "solid"),
        (series.arriving, PALETTE[0], "solid"),
    ):
        if one.is_known:
            figure.add_trace(_line(one, colour, dash=dash))
    figure.update_yaxes(title="records/s", exponentformat="SI", rangemode="tozero")
    return _over_time(figure, "Rate")


def lag_figure(series: AutopilotSeries) -> go.Figure:
    """How long catching up would take, seconds."""
    figure = go.Figure([_line(series.lag_s, PALETTE[0])])
    figure.update_yaxes(title="lag, s", rangemode="tozero")
    return _over_time(figure, "Lag")


def tasks_figure(series: AutopilotSeries) -> go.Figure:
    """Tasks of each vertex, which change in steps, and the rescales."""
    shown = [*series.tasks, *([series.slots] if series.slots.is_known else [])]
    figure = go.Figure([_line(one, PALETTE[n % len(PALETTE)], shape="hv") for n, one in enumerate(shown)])
    top = max((value for one in shown for value in one.values if value is not None), default=1)
    for done in dict.fromkeys(mark.done for mark in series.marks):
        figure.add_trace(_marked(done, [mark for mark in series.marks if mark.done == done], 1.08 * top))
    figure.update_yaxes(title="tasks", rangemode="tozero")
    return _over_time(figure, "Tasks")


def budget_figure(series: AutopilotSeries) -> go.Figure:
    """Late records over those that may be late, with the limit."""
    figure = go.Figure([_line(series.budget_spent, PALETTE[0])])
    figure.add_hline(y=1.0, line={"color": TARGET, "dash": "dot"}, annotation_text="all of it")
    figure.update_yaxes(title="share of the budget", tickformat=".0%", rangemode="tozero")
    return _over_time(figure, "Lateness budget")


def price_figure(series: AutopilotSeries) -> go.Figure:
    """USD per hour, which changes in steps."""
    figure = go.Figure([_line(series.price, PALETTE[0], shape="hv")])
    figure.update_yaxes(title="USD per hour", rangemode="tozero")
    return _over_time(figure, "Price")


def _line(series: TimeSeries, colour: str, *, shape: str = "linear", dash: str = "solid") -> go.Scatter:
    return go.Scatter(
        x=series.times,
        y=series.values,
        name=series.name,
        mode="lines",
        connectgaps=False,
        line={"color": colour, "shape": shape, "dash": dash, "width": 2},
    )


def _band(band: ForecastBand, in_legend: bool) -> go.Scatter:
    return go.Scatter(
        x=[*band.times, *reversed(band.times)],
        y=[*band.high, *reversed(band.low)],
        name="forecast",
        legendgroup="forecast",
        showlegend=in_legend,
        fill="toself",
        fillcolor=FORECAST,
        opacity=0.3,
        line={"width": 0},
        hoverinfo="skip",
    )


def _marked(done: Done, marks: Sequence[RescaleMark], height: float) -> go.Scatter:
    symbol, colour = MARKS[done]
    return go.Scatter(
        x=[mark.at for mark in marks],
        y=[height] * len(marks),
        name=done,
        mode="markers",
        marker={"symbol": symbol, "size": 11, "color": colour},
        text=[mark.why for mark in marks],
        hovertemplate="%{text}<extra></extra>",
    )


def _over_time(figure: go.Figure, title: str) -> go.Figure:
    """The same time axis below every figure, whose zoom survives an update."""
    figure.update_xaxes(title="UTC", gridcolor=NEUTRAL, griddash="dot")
    figure = layout(figure, title, height=HEIGHT)
    return figure.update_layout(uirevision="kept", showlegend=True, hovermode="x")


def _plain(figure: go.Figure) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(figure.to_json())
    return content
