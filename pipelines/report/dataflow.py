"""The dataflow, coloured by predicted busyness."""

from dataclasses import dataclass

import networkx as nx
import plotly.graph_objects as go

from pipelines.report.style import BUSYNESS_SCALE, layout
from pipelines.report.subject import ReportSubject


@dataclass(frozen=True)
class Node:
    """An operator: its layer, its position within the layer, and its figures in the plan."""

    name: str
    layer: int
    place: float
    parallelism: int
    busyness: float
    records_in_per_s: float


@dataclass(frozen=True)
class DataflowInfo:
    nodes: tuple[Node, ...]
    edges: tuple[tuple[str, str, str], ...]
    """Upstream, downstream, partitioning."""


def dataflow_info(subject: ReportSubject) -> DataflowInfo:
    """Layer an operator by its longest path from a source; spread a layer's operators evenly around 0."""
    graph: nx.DiGraph[str] = nx.DiGraph((e.upstream, e.downstream) for e in subject.job.edges)
    layers = list(nx.topological_generations(graph))
    planned = {o.name: o for o in subject.plan.operators}
    nodes = []
    for layer, names in enumerate(layers):
        for index, name in enumerate(sorted(names, key=subject.job.order.index)):
            operator = planned[name]
            nodes.append(
                Node(
                    name=name,
                    layer=layer,
                    place=index - (len(names) - 1) / 2,
                    parallelism=operator.parallelism,
                    busyness=operator.predicted_busyness,
                    records_in_per_s=operator.records_in_per_s,
                )
            )
    edges = tuple((e.upstream, e.downstream, e.partitioning.value) for e in subject.scaling.dataflow.edges)
    return DataflowInfo(tuple(nodes), edges)


def dataflow_figure(info: DataflowInfo) -> go.Figure:
    at = {n.name: (n.layer, n.place) for n in info.nodes}
    figure = go.Figure()
    for upstream, downstream, partitioning in info.edges:
        (x0, y0), (x1, y1) = at[upstream], at[downstream]
        figure.add_annotation(
            x=x1, y=y1, ax=x0, ay=y0, xref="x", yref="y", axref="x", ayref="y", showarrow=True, text="",
            arrowhead=2, arrowwidth=1.5, arrowcolor="#94a3b8", standoff=26, startstandoff=26,
        )  # fmt: skip
        figure.add_annotation(
            x=(x0 + x1) / 2, y=(y0 + y1) / 2, text=partitioning, showarrow=False, yshift=9,
            font={"size": 10, "color": "#64748b"},
        )  # fmt: skip
    figure.add_trace(
        go.Scatter(
            x=[n.layer for n in info.nodes],
            y=[n.place for n in info.nodes],
            mode="markers+text",
            marker={
                "size": 44,
                "color": [n.busyness for n in info.nodes],
                "colorscale": BUSYNESS_SCALE,
                "cmin": 0,
                "cmax": 1,
                "line": {"width": 1, "color": "#334155"},
                "colorbar": {"title": "busyness", "tickformat": ".0%", "thickness": 12},
            },
            text=[f"<b>{n.parallelism}</b>" for n in info.nodes],
            customdata=[[n.name, n.busyness, n.records_in_per_s] for n in info.nodes],
            hovertemplate="%{customdata[0]}: %{text} tasks<br>busy %{customdata[1]:.1%}"
            "<br>%{customdata[2]:,.0f} records/s in<extra></extra>",
            showlegend=False,
        )
    )
    for node in info.nodes:
        figure.add_annotation(
            x=node.layer, y=node.place, text=node.name, showarrow=False, yshift=-34, font={"size": 11}
        )
    depth = max((abs(n.place) for n in info.nodes), default=0.0)
    figure.update_xaxes(visible=False, range=[-0.5, max(n.layer for n in info.nodes) + 0.5])
    figure.update_yaxes(visible=False, range=[-depth - 0.7, depth + 0.7])
    return layout(
        figure, "Dataflow: tasks of each operator, coloured by predicted busyness", height=300 + int(240 * depth)
    )
