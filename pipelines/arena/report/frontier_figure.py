"""Late records against task-hours of each policy: its settings, and its frontier."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from pipelines.arena.report.curves import policy_colours
from pipelines.arena.scoring.frontier import LEAST_LATE, FrontierPoint
from pipelines.arena.scoring.scores import GroupScore
from pipelines.report.style import NEUTRAL, layout


@dataclass(frozen=True)
class PolicyLine:
    """A policy in the figure."""

    policy: str
    knob: str
    front: tuple[FrontierPoint, ...]
    dominated: tuple[FrontierPoint, ...]


def policy_lines(group: GroupScore, policies: Sequence[str]) -> tuple[PolicyLine, ...]:
    """In the order of `policies`."""
    scores = [group.score(policy) for policy in policies]
    return tuple(
        PolicyLine(s.policy, s.knob, s.front, tuple(point for point in s.points if point not in s.front))
        for s in scores
    )


def frontier_figure(lines: Sequence[PolicyLine], objective_s: int, attainment: float) -> go.Figure:
    """A trace's `meta` is its policy, as in the figure over time.

    Args:
        objective_s: waiting time beyond which a record is late, seconds.
        attainment: share of the records that should be within it; a dashed line.
    """
    figure = go.Figure()
    colours = policy_colours(line.policy for line in lines)
    for line, named in zip(lines, _named(lines), strict=True):
        _draw(figure, line, line.front, colours[line.policy], named)
        if line.dominated:
            _draw(figure, line, line.dominated, colours[line.policy], None)
    figure.add_hline(y=max(1 - attainment, LEAST_LATE), line={"color": NEUTRAL, "dash": "dash", "width": 1})
    figure.update_xaxes(title="task-hours", exponentformat="SI")
    figure.update_yaxes(title=f"share of records later than {objective_s} s", type="log", dtick=1, tickformat=".2~%")
    layout(figure, "", height=420)
    return figure.update_layout(title=None, showlegend=False, margin={"l": 70, "r": 12, "t": 16, "b": 48})


def _named(lines: Sequence[PolicyLine]) -> list[int]:
    """The point of each frontier that bears the name: the farthest from the names before it, so that none covers another."""
    most = max((point.task_hours for line in lines for point in line.front), default=1.0)
    taken: list[tuple[float, float]] = []
    found = []
    for line in lines:
        places = [(p.task_hours / most, math.log(_drawn(p), LEAST_LATE)) for p in line.front]
        apart = [min((math.dist(place, other) for other in taken), default=math.inf) for place in places]
        found.append(apart.index(max(apart)))
        taken.append(places[found[-1]])
    return found


def _drawn(point: FrontierPoint) -> float:
    return max(point.late_share, LEAST_LATE)


def _draw(figure: go.Figure, line: PolicyLine, points: Sequence[FrontierPoint], colour: str, named: int | None) -> None:
    """A frontier, with the name at one of its points, or points beside it."""
    on_front = named is not None
    figure.add_trace(
        go.Scatter(
            x=[p.task_hours for p in points], y=[_drawn(p) for p in points],
            mode="lines+markers+text" if on_front else "markers",
            name=line.policy, meta=line.policy, line={"color": colour, "width": 1.6},
            text=[line.policy if i == named else "" for i in range(len(points))], textposition="top right",
            textfont={"color": colour, "size": 12},
            marker={"size": 9 if on_front else 7, "color": colour, "symbol": "circle" if on_front else "circle-open",
                    "line": {"width": 1.5, "color": colour}},
            hovertext=[_shown(line, point) for point in points], hoverinfo="text",
        )
    )  # fmt: skip


def _shown(line: PolicyLine, point: FrontierPoint) -> str:
    return (
        f"{line.policy}, {line.knob} {point.value:g}: {point.late_share:.3%} late, {point.task_hours:,.1f} task-hours"
    )
