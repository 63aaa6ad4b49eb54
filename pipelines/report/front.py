"""The Pareto front of the placement's costs, with the chosen plan and Flink's own policies."""

import time
from dataclasses import dataclass
from typing import Final, Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from models.errors import Infeasible
from models.placement import Front, pareto_front, place
from models.placement.problem import DIMENSIONS
from models.placement.shared.place import place_shared
from models.placement.shared.sharing import SharedDataflow
from models.plan.parts import CostVector
from pipelines.report.style import NEUTRAL, PALETTE, TARGET, layout
from pipelines.report.subject import ReportSubject

SEEDS: Final = 10
"""Number of random task orders for Flink's policies."""
SEARCH_S: Final = 3.0
"""Time limit of the front in the report, seconds; the report says whether it is complete."""
PAIRS: Final = (("cpu", "io"), ("cpu", "net"), ("io", "net"))


@dataclass(frozen=True)
class BaselineCost:
    policy: Literal["default", "evenly", "tasks"]
    seed: int
    cost: CostVector


@dataclass(frozen=True)
class FrontInfo:
    """Costs to compare; `exact` is False if the search of the front was cut short or has a step."""

    chosen: CostVector
    front: tuple[CostVector, ...]
    exact: bool
    note: str
    baselines: tuple[BaselineCost, ...]


def front_info(subject: ReportSubject, search_s: float = SEARCH_S) -> FrontInfo:
    """The front within the time limit, and the baselines over ten seeds (if they fit the memory)."""
    if (vertices := subject.scaling.shared) is not None:
        return _without_front(subject, vertices)
    dataflow, cluster = subject.scaling.dataflow, subject.cluster
    front = pareto_front(dataflow, cluster, clock=time.monotonic, time_limit_s=search_s)
    baselines = []
    policies: tuple[Literal["default", "evenly"], ...] = ("default", "evenly")
    for policy in policies:
        for seed in range(SEEDS):
            try:
                baselines.append(BaselineCost(policy, seed, place(dataflow, cluster, policy, seed=seed).cost))
            except Infeasible:
                continue
    return FrontInfo(
        chosen=subject.plan.cost,
        front=tuple(point.cost for point in front.points),
        exact=front.status == "optimal" and front.step == 0,
        note=_note(front, search_s),
        baselines=tuple(baselines),
    )


def _without_front(subject: ReportSubject, vertices: SharedDataflow) -> FrontInfo:
    """The chosen plan beside Flink's policies, where slots are shared: there the front is not searched."""
    baselines = []
    policies: tuple[Literal["default", "evenly", "tasks"], ...] = ("default", "evenly", "tasks")
    for policy in policies:
        for seed in range(SEEDS):
            try:
                placed = place_shared(vertices, subject.cluster, policy, seed)
            except Infeasible:
                continue
            baselines.append(BaselineCost(policy, seed, placed.cost))
    note = "not searched where slots are shared"
    return FrontInfo(chosen=subject.plan.cost, front=(), exact=False, note=note, baselines=tuple(baselines))


def _note(front: Front, search_s: float) -> str:
    if front.status == "optimal":
        return "exact" if front.step == 0 else f"complete except for differences in cost below {front.step:g}"
    return f"as found in {search_s:g} s of search; better points may exist"


def front_figure(info: FrontInfo) -> go.Figure:
    """The three costs in pairs: 0 is balanced, 1 the worst possible."""
    titles = [f"{x} and {y}" for x, y in PAIRS]
    figure = make_subplots(rows=1, cols=len(PAIRS), horizontal_spacing=0.07, subplot_titles=titles)
    groups: list[tuple[str, list[CostVector], dict[str, object]]] = [
        (policy, [b.cost for b in info.baselines if b.policy == policy], {"color": colour, "size": 8, "symbol": symbol})
        for policy, colour, symbol in (
            ("default", NEUTRAL, "x"),
            ("evenly", PALETTE[2], "circle-open"),
            ("tasks", PALETTE[3], "square-open"),
        )
        if any(b.policy == policy for b in info.baselines) or policy != "tasks"
    ]
    groups.append(("Pareto front", list(info.front), {"color": PALETTE[0], "size": 9}))
    groups.append(("this plan", [info.chosen], {"color": TARGET, "size": 15, "symbol": "star"}))
    for column, (x, y) in enumerate(PAIRS, start=1):
        for name, costs, marker in groups:
            every = [[getattr(c, d) for d in DIMENSIONS] for c in costs]
            figure.add_trace(
                go.Scatter(
                    x=[getattr(c, x) for c in costs], y=[getattr(c, y) for c in costs], customdata=every,
                    mode="markers", name=name, legendgroup=name, showlegend=column == 1, marker=marker, cliponaxis=False,
                    hovertemplate=f"{name}<br>cpu %{{customdata[0]:.4f}}, io %{{customdata[1]:.4f}}, "
                    "net %{customdata[2]:.4f}<extra></extra>",
                ),
                row=1, col=column,
            )  # fmt: skip
        figure.update_xaxes(title=f"C_{x}", rangemode="tozero", row=1, col=column)
        figure.update_yaxes(title=f"C_{y}", rangemode="tozero", row=1, col=column)
    return layout(figure, f"Costs to choose from (front: {info.note})")
