"""Where every task runs, and what each worker carries."""

from dataclasses import dataclass

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from pipelines.report.style import LOAD_COLOURS, PALETTE, layout
from pipelines.report.subject import Subject


@dataclass(frozen=True)
class WorkerInfo:
    """One worker: its slots in order (None where free), and its loads as shares of the busiest worker's."""

    name: str
    slots: tuple[str | None, ...]
    cpu: float
    io: float
    net: float


@dataclass(frozen=True)
class PlacementInfo:
    operators: tuple[str, ...]
    workers: tuple[WorkerInfo, ...]


def placement_info(subject: Subject) -> PlacementInfo:
    """Loads are the sums over a worker's tasks; network counts all that its tasks emit, local or not."""
    loads = {o.name: o for o in subject.scaling.dataflow.operators}
    order = {name: i for i, name in enumerate(subject.job.order)}
    totals = {}
    for worker in subject.cluster.workers:
        tasks = subject.plan.placement.get(worker.name, {})
        totals[worker.name] = tuple(
            sum(count * getattr(loads[name], dimension) for name, count in tasks.items())
            for dimension in ("cpu", "io", "net")
        )
    most = [max(total[d] for total in totals.values()) or 1.0 for d in range(3)]
    workers = []
    for worker in subject.cluster.workers:
        tasks = subject.plan.placement.get(worker.name, {})
        used = [name for name in sorted(tasks, key=order.__getitem__) for _ in range(tasks[name])]
        slots: list[str | None] = [*used, *[None] * (worker.slots - len(used))]
        cpu, io, net = (total / top for total, top in zip(totals[worker.name], most, strict=True))
        workers.append(WorkerInfo(worker.name, tuple(slots), cpu, io, net))
    return PlacementInfo(subject.job.order, tuple(workers))


def placement_figure(info: PlacementInfo) -> go.Figure:
    index = {name: i for i, name in enumerate(info.operators)}
    slots = max(len(w.slots) for w in info.workers)
    names = [w.name for w in info.workers]
    grid = [[None if s is None else index[s] for s in w.slots] + [None] * (slots - len(w.slots)) for w in info.workers]
    labels = [[s or "free" for s in w.slots] + [""] * (slots - len(w.slots)) for w in info.workers]
    colours = _discrete(len(info.operators))
    figure = make_subplots(
        rows=1, cols=2, column_widths=[0.68, 0.32], shared_yaxes=True, horizontal_spacing=0.03,
        subplot_titles=("tasks in slots", "load, as share of the most loaded worker's"),
    )  # fmt: skip
    figure.add_trace(
        go.Heatmap(
            z=grid, x=[str(i + 1) for i in range(slots)], y=names, customdata=labels, colorscale=colours,
            zmin=-0.5, zmax=len(info.operators) - 0.5, xgap=1, ygap=1, showscale=False,
            hovertemplate="%{y}, slot %{x}: %{customdata}<extra></extra>",
        ),
        row=1, col=1,
    )  # fmt: skip
    for name, position in index.items():
        figure.add_trace(
            go.Scatter(x=[None], y=[None], mode="markers", name=name,
                       marker={"color": PALETTE[position % len(PALETTE)], "symbol": "square", "size": 11}),
            row=1, col=1,
        )  # fmt: skip
    for dimension, symbol in (("cpu", "circle"), ("io", "square"), ("net", "diamond")):
        figure.add_trace(
            go.Scatter(
                x=[getattr(w, dimension) for w in info.workers], y=names, mode="markers", name=f"{dimension} load",
                marker={"symbol": symbol, "size": 7, "color": LOAD_COLOURS[dimension], "line": {"width": 1, "color": "white"}},
            ),
            row=1, col=2,
        )  # fmt: skip
    figure.update_xaxes(range=[0, 1.05], tickformat=".0%", row=1, col=2)
    figure.update_yaxes(range=[len(names) - 0.5, -0.5], tickfont={"size": 9})
    return layout(figure, "Placement", height=max(340, 180 + 14 * len(info.workers)))


def _discrete(count: int) -> list[list[float | str]]:
    """A colour scale of `count` flat steps."""
    steps: list[list[float | str]] = []
    for i in range(count):
        colour = PALETTE[i % len(PALETTE)]
        steps += [[i / count, colour], [(i + 1) / count, colour]]
    return steps
