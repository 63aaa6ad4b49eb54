"""Where every task runs, and the load of each worker, before and after."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from models.placement.cost import as_array, load_limits, worker_loads
from models.placement.kernels.problem import Floats
from models.placement.problem import DIMENSIONS, Problem
from models.placement.replan.moves import running_counts
from models.placement.shared.bundles import task_problem
from models.plan.content import Plan
from models.plan.equal_workers import spans
from models.plan.parts import Placement
from pipelines.report.style import LOAD_COLOURS, NEUTRAL, PALETTE, layout
from pipelines.report.subject import ReportSubject

SYMBOLS: Final = {"cpu": "circle", "io": "square", "net": "diamond"}


@dataclass(frozen=True)
class WorkerInfo:
    """One worker: its slots in order (None where free), which of these tasks started here, and its loads.

    A load is a share of the limit from the threshold (Eq. 10) or, without a limit, of the worst load that any placement
    could have; network is outbound traffic.
    """

    name: str
    slots: tuple[str | None, ...]
    started: tuple[bool, ...]
    cpu: float
    io: float
    net: float


@dataclass(frozen=True)
class PlacementInfo:
    operators: tuple[str, ...]
    workers: tuple[WorkerInfo, ...]
    limited: dict[str, bool]
    """Whether a dimension's loads are shares of a limit."""
    version: int
    before: tuple[WorkerInfo, ...] = ()
    """The previous version's tasks at the new rate, on the same workers; empty without one."""
    before_version: int | None = None


def placement_info(subject: ReportSubject) -> PlacementInfo:
    """Workers in the order of the cluster; loads as the cost model counts them, at the plan's target rate."""
    plan, previous = subject.plan, subject.previous
    vertices = subject.scaling.shared
    problem = (
        Problem.of(subject.scaling.dataflow, subject.cluster)
        if vertices is None
        else task_problem(vertices, subject.cluster)
    )
    limits = load_limits(problem, as_array(plan.thresholds))
    scale = np.where(np.isfinite(limits) & (limits > 0), limits, problem.most)
    ran = None if previous is None else previous.placement
    return PlacementInfo(
        operators=tuple(dict.fromkeys([*subject.job.order, *(previous.parallelism if previous else ())])),
        workers=_workers(subject, problem, plan.placement, scale, ran),
        limited={d: bool(np.isfinite(limits[k]) and limits[k] > 0) for k, d in enumerate(DIMENSIONS)},
        version=plan.version,
        before=() if previous is None else _before(subject, problem, previous, scale),
        before_version=None if previous is None else previous.version,
    )


def _before(subject: ReportSubject, problem: Problem, previous: Plan, scale: Floats) -> tuple[WorkerInfo, ...]:
    """The previous version's tasks, with the present total load of each operator divided among them."""
    tasks = np.array([max(1, previous.parallelism.get(name, 0)) for name in problem.operators], dtype=np.int64)
    part, edges = problem.parallelism / tasks, problem.edges
    old = replace(
        problem,
        parallelism=tasks,
        loads=problem.loads * part,
        edges=replace(
            edges,
            load=edges.load * part[edges.upstream],
            forward=edges.forward & (tasks[edges.upstream] == tasks[edges.downstream]),
        ),
    )
    return _workers(subject, old, previous.placement, scale, None)


def _workers(
    subject: ReportSubject, problem: Problem, placement: Placement, scale: Floats, ran: Placement | None
) -> tuple[WorkerInfo, ...]:
    """The workers of the cluster with the tasks of a placement; those that `ran` lacks are marked as started."""
    loads = worker_loads(problem, running_counts(problem, placement)) / np.where(scale > 0, scale, 1.0)[:, None]
    workers = []
    for w, worker in enumerate(subject.cluster.workers):
        tasks, kept = placement.get(worker.name, {}), {} if ran is None else ran.get(worker.name, {})
        names = [n for n in (*subject.job.order, *(t for t in tasks if t not in subject.job.order)) if n in tasks]
        used = [(n, ran is not None and k >= kept.get(n, 0)) for n in names for k in range(tasks[n])]
        shared = subject.plan.slots if placement is subject.plan.placement else {}
        taken = sum(b.slots for b in shared[worker.name]) if worker.name in shared else len(used)
        free = max(0, worker.slots - taken)
        workers.append(
            WorkerInfo(
                name=worker.name,
                slots=(*(n for n, _ in used), *[None] * free),
                started=(*(new for _, new in used), *[False] * free),
                **{d: float(loads[k, w]) for k, d in enumerate(DIMENSIONS)},
            )
        )
    return tuple(workers)


def placement_figure(info: PlacementInfo) -> go.Figure:
    """Slots of the workers, before and after, with their loads beside; a dot marks a task that started there.

    Workers that look alike on both sides are one row.
    """
    info, idle = _occupied(info)
    info = _folded(info)
    sides = [(f"version {info.before_version}, at the new rate", info.before)] if info.before else []
    sides.append((f"version {info.version}", info.workers))
    titles = [title for name, _ in sides for title in (f"tasks in slots: {name}", "load against its limit")]
    figure = make_subplots(
        rows=1, cols=2 * len(sides), shared_yaxes=True, horizontal_spacing=0.025, subplot_titles=titles,
        column_widths=[0.66, 0.34] * len(sides),
    )  # fmt: skip
    slots = max(len(w.slots) for _, workers in sides for w in workers)
    most = max([1.0, *(getattr(w, d) for _, workers in sides for w in workers for d in DIMENSIONS)])
    for side, (_, workers) in enumerate(sides):
        _draw_slots(figure, info.operators, workers, slots, 2 * side + 1)
        _draw_loads(figure, info, workers, 1.05 * most, 2 * side + 2)
    for position, name in enumerate(info.operators):
        marker = {"color": PALETTE[position % len(PALETTE)], "symbol": "square", "size": 11}
        figure.add_trace(go.Scatter(x=[None], y=[None], mode="markers", name=name, marker=marker), row=1, col=1)
    figure.update_yaxes(range=[len(info.workers) - 0.5, -0.5], tickfont={"size": 9})
    title = "Placement (a dot marks a task that starts on a new worker)" if info.before else "Placement"
    left_out = f"; workers without tasks, left out: {idle}" if idle else ""
    return layout(figure, title + left_out, height=max(340, 180 + 14 * len(info.workers)))


def _occupied(info: PlacementInfo) -> tuple[PlacementInfo, int]:
    """The figure's data without workers that have no task now or before, and the number of these workers."""
    kept = {worker.name for worker in (*info.workers, *info.before) if any(worker.slots)}
    workers = tuple(worker for worker in info.workers if worker.name in kept)
    before = tuple(worker for worker in info.before if worker.name in kept)
    return replace(info, workers=workers, before=before), len(info.workers) - len(workers)


def _folded(info: PlacementInfo) -> PlacementInfo:
    """The figure's data with equal workers as one, named by all of them; loads are equal to 0.1 percentage points."""
    before = dict(zip((worker.name for worker in info.workers), info.before, strict=False))
    groups: dict[tuple[object, ...], list[WorkerInfo]] = {}
    for worker in info.workers:
        look = _look(worker), _look(before[worker.name]) if worker.name in before else None
        groups.setdefault(look, []).append(worker)
    names = {alike[0].name: _together([worker.name for worker in alike]) for alike in groups.values()}

    def named(workers: tuple[WorkerInfo, ...]) -> tuple[WorkerInfo, ...]:
        return tuple(replace(worker, name=names[worker.name]) for worker in workers if worker.name in names)

    return replace(info, workers=named(info.workers), before=named(info.before))


def _look(worker: WorkerInfo) -> tuple[object, ...]:
    return worker.slots, worker.started, *(round(getattr(worker, dimension), 3) for dimension in DIMENSIONS)


def _together(names: list[str]) -> str:
    """A row's label: all names as one span, or the first and the number of the others."""
    if len(names) == 1:
        return names[0]
    in_a_row = spans(names)
    return f"{in_a_row[0]} ({len(names)})" if len(in_a_row) == 1 else f"{names[0]} and {len(names) - 1} more"


def _draw_slots(
    figure: go.Figure, operators: tuple[str, ...], workers: tuple[WorkerInfo, ...], slots: int, column: int
) -> None:
    index = {name: i for i, name in enumerate(operators)}
    padded = [[*w.slots, *[None] * (slots - len(w.slots))] for w in workers]
    labels = [[s or ("free" if k < len(w.slots) else "") for k, s in enumerate(row)]
              for w, row in zip(workers, padded, strict=True)]  # fmt: skip
    marks = [["\u25cf" if k < len(w.started) and w.started[k] else "" for k in range(slots)] for w in workers]
    figure.add_trace(
        go.Heatmap(
            z=[[None if s is None else index[s] for s in row] for row in padded],
            x=[str(k + 1) for k in range(slots)], y=[w.name for w in workers], customdata=labels,
            text=marks, texttemplate="%{text}", textfont={"color": "white", "size": 9},
            colorscale=_discrete(len(operators)), zmin=-0.5, zmax=len(operators) - 0.5, xgap=1, ygap=1,
            showscale=False, hovertemplate="%{y}, slot %{x}: %{customdata} %{text}<extra></extra>",
        ),
        row=1, col=column,
    )  # fmt: skip


def _draw_loads(
    figure: go.Figure, info: PlacementInfo, workers: tuple[WorkerInfo, ...], most: float, column: int
) -> None:
    for dimension, symbol in SYMBOLS.items():
        of = "share of its limit" if info.limited[dimension] else "share of the worst possible; not limited"
        figure.add_trace(
            go.Scatter(
                x=[getattr(w, dimension) for w in workers], y=[w.name for w in workers], mode="markers",
                name=f"{dimension} load", legendgroup=dimension, showlegend=column == 2,
                hovertemplate=f"%{{y}}: {dimension} %{{x:.1%}}<br>{of}<extra></extra>",
                marker={"symbol": symbol, "size": 7, "color": LOAD_COLOURS[dimension],
                        "line": {"width": 1, "color": "white"}},
            ),
            row=1, col=column,
        )  # fmt: skip
    figure.add_vline(x=1, line={"color": NEUTRAL, "dash": "dash", "width": 1}, row=1, col=column)
    figure.update_xaxes(range=[0, most], tickformat=".0%", row=1, col=column)


def _discrete(count: int) -> list[list[float | str]]:
    """A colour scale of `count` flat steps."""
    steps: list[list[float | str]] = []
    for i in range(count):
        colour = PALETTE[i % len(PALETTE)]
        steps += [[i / count, colour], [(i + 1) / count, colour]]
    return steps
