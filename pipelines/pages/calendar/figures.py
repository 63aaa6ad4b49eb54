"""The figure of a job's calendar: the curves that `sluice calendar --plot` draws, for the days to come."""

import json
from datetime import datetime
from typing import Final

import plotly.graph_objects as go

from pipelines.calendar.figure import ScheduleCurves, curves
from pipelines.pages.calendar.detail import Around
from pipelines.report.style import NEUTRAL, PALETTE, layout
from pipelines.store.pictures import Pictures

HEIGHT: Final = 360


def calendar_pictures(found: Around | None) -> Pictures:
    """The figure as plotly.js draws it; none for a job without a calendar."""
    if found is None:
        return Pictures(figures={})
    figure = schedule_figure(curves(found.calendar, found.coming), found.calendar.rules.time_zone)
    return Pictures(figures={"schedule": json.loads(figure.to_json())})


def schedule_figure(shown: ScheduleCurves, time_zone: str) -> go.Figure:
    """Rates that are planned for, over the rates that are expected."""
    expected = _steps(shown)
    figure = go.Figure(
        [
            go.Scatter(
                x=[_wall(at) for at, _ in expected],
                y=[rate for _, rate in expected],
                name="expected",
                mode="lines",
                fill="tozeroy",
                line={"color": NEUTRAL, "shape": "hv", "width": 1},
            ),
            go.Scatter(
                x=[_wall(at) for at in shown.planned_from],
                y=list(shown.planned),
                name="planned for",
                mode="lines",
                line={"color": PALETTE[0], "shape": "hv", "width": 2},
            ),
        ]
    )
    figure.update_xaxes(title=f"time in {time_zone}", gridcolor=NEUTRAL, griddash="dot")
    figure.update_yaxes(title="records/s", exponentformat="SI", rangemode="tozero")
    return layout(figure, "Schedule", height=HEIGHT).update_layout(showlegend=True, hovermode="x")


def _steps(shown: ScheduleCurves) -> list[tuple[datetime, float]]:
    """The expected rates where they change, and at the end, where the last of them still holds."""
    found = list(zip(shown.times, shown.expected, strict=True))
    kept = [one for one, before in zip(found, [None, *found], strict=False) if before is None or one[1] != before[1]]
    return [*kept, (shown.planned_from[-1], found[-1][1])]


def _wall(at: datetime) -> str:
    """The time of its zone's clock without an offset, which plotly.js would leave out anyway."""
    return at.replace(tzinfo=None).isoformat()
