"""A page of a run: rate, tasks and wait over time, one column a contender, one line a repetition."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
from plotly.subplots import make_subplots

from benchmarks.autopilot.acting import FACTOR
from benchmarks.autopilot.acting.contenders import BURN_IN_S
from benchmarks.autopilot.acting.run import FOLDER, RunPlan
from benchmarks.autopilot.acting.scores import lag_seconds, tasks_over_time
from pipelines.store.workspace import Workspace

COLOURS: Final = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b")
ROW_PX: Final = 260


def write_page(plans: Sequence[RunPlan], kind: str, trace: str, workspace: Workspace) -> Path:
    """One page for a job and a trace; returns its path."""
    names = [one.name for one in plans[0].contenders]
    figure = make_subplots(
        rows=3,
        cols=len(names),
        shared_xaxes=True,
        shared_yaxes="rows",
        column_titles=names,
        row_titles=["records/s", "tasks", "wait, s"],
        vertical_spacing=0.04,
        horizontal_spacing=0.01,
    )
    workload = RunPlan.workload(trace)
    grid = np.arange(0.0, workload.seconds / FACTOR + 0.5)
    rates = [workload.rates[min(int(t * FACTOR // workload.step_s), len(workload.rates) - 1)] * FACTOR for t in grid]
    for column, name in enumerate(names, start=1):
        figure.add_trace(go.Scatter(x=grid, y=rates, line_color="#555"), row=1, col=column)
        for number, plan in enumerate(plans):
            series: pa.Table = workspace.read_table(f"{FOLDER}/{plan.name}/{name}.{kind}.{trace}.parquet")
            line = {"color": COLOURS[number % len(COLOURS)], "width": 1}
            for row, values in ((2, tasks_over_time(series, grid)), (3, lag_seconds(series, grid))):
                label = f"run {plan.repetition}, Flink {plan.flink}"
                figure.add_trace(go.Scatter(x=grid, y=values, line=line, name=label), row=row, col=column)
    figure.add_vrect(0, BURN_IN_S / FACTOR, fillcolor="#eee", line_width=0, layer="below")
    figure.update_layout(
        title=f"Job {kind}, trace {trace}: a line for each run, seconds of real time; grey: not scored",
        showlegend=False,
        height=3 * ROW_PX,
        template="plotly_white",
    )
    path = workspace.local_folder(FOLDER) / f"{kind}-{trace}.html"
    figure.write_html(path, include_plotlyjs=True)
    return path
