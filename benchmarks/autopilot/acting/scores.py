"""From what was recorded of a job to its figures."""

from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from models.errors import InvalidInput
from models.schema import Format, NonNegative, Ratio
from pipelines.arena.replays.latency import Waiting, waiting

GRID_REAL_S: Final = 1.0
LIMITS_REAL_S: Final = (1.0, 5.0, 10.0, 60.0)


class ActingScores(Format):
    """Figures of one job from the end of the burn-in; seconds and minutes of real time."""

    records: int = Field(description="That arrived.")
    p50_s: NonNegative = Field(description="Time from arrival to the end of processing, percentiles over records.")
    p95_s: NonNegative
    p99_s: NonNegative
    within: dict[str, Ratio] = Field(description="Share of the records by seconds within which they were processed.")
    most_lag: int = Field(description="Most records that waited.")
    task_minutes: NonNegative = Field(description="Tasks of all vertices over time.")
    slot_minutes: NonNegative = Field(description="Tasks of the widest vertex over time.")
    mean_tasks: NonNegative
    rescales: int = Field(description="Times that the tasks of a vertex changed.")
    restarts: int = Field(description="Times that the job was started again, rescales included.")
    downtime_s: NonNegative = Field(description="Time in which not all tasks ran.")


def scores(series: pa.Table, burn_in_real_s: float, end_real_s: float) -> ActingScores:
    """
    Args:
        series: with `recording.SERIES_SCHEMA`.

    Raises:
        InvalidInput: nothing arrived in that time.
    """
    grid = np.arange(0.0, end_real_s + GRID_REAL_S / 2, GRID_REAL_S)
    arrived, committed = _curves(series, grid)
    # What waits at the begin counts as arriving in a first interval, before the burn-in.
    waited: Waiting | None = waiting(
        np.diff(arrived, prepend=0.0),
        np.diff(committed, prepend=0.0),
        GRID_REAL_S,
        skipped=1 + round(burn_in_real_s / GRID_REAL_S),
    )
    if waited is None:
        raise InvalidInput("a job must be sent records to be scored, but none arrived after the burn-in")
    p50, p95, p99 = waited.quantiles((0.5, 0.95, 0.99))
    scored = slice(round(burn_in_real_s / GRID_REAL_S), None)
    tasks, slots = (_steps(series, name, grid)[scored] for name in ("tasks", "slots"))
    minutes = GRID_REAL_S / 60
    within = series.filter(pc.and_(*_between(series, burn_in_real_s, end_real_s)))
    return ActingScores(
        records=int(arrived[-1] - arrived[scored][0]),
        p50_s=p50,
        p95_s=p95,
        p99_s=p99,
        within={f"{limit:g}": waited.share_within(limit) for limit in LIMITS_REAL_S},
        most_lag=int(np.max((arrived - committed)[scored])),
        task_minutes=float(np.sum(tasks)) * minutes,
        slot_minutes=float(np.sum(slots)) * minutes,
        mean_tasks=float(np.mean(tasks)),
        rescales=_changes(within.column("parallelism")),
        restarts=_changes(within.column("running_since_ms")),
        downtime_s=_down_s(within),
    )


def lag_seconds(series: pa.Table, grid: np.ndarray) -> np.ndarray:
    """How long the next record to be processed has waited, seconds of real time; float64[grid]."""
    arrived, committed = _curves(series, grid)
    first = np.searchsorted(arrived, committed, side="right") - 1
    since = np.interp(committed, arrived, grid) if len(grid) else grid
    waits = arrived - committed > 0.5
    return np.where(waits & (first >= 0), np.maximum(grid - since, 0.0), 0.0)


def tasks_over_time(series: pa.Table, grid: np.ndarray) -> np.ndarray:
    """Tasks of all vertices at the times of a grid, seconds of real time; float64[grid]."""
    return _steps(series, "tasks", grid)


def _curves(series: pa.Table, grid: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Records that arrived, and that were committed, at the times of the grid, since its begin."""
    read = series.filter(pc.is_valid(series.column("arrived"))).sort_by("at_s")
    at = read.column("at_s").to_numpy()
    curves = []
    for name in ("arrived", "committed"):
        known = np.maximum.accumulate(read.column(name).to_numpy().astype(float))
        curves.append(np.interp(grid, at, known))
    first = curves[1][0]
    return curves[0] - first, curves[1] - first


def _steps(series: pa.Table, name: str, grid: np.ndarray) -> np.ndarray:
    """The last known value at each time of the grid; a job that is started again has what it asks for."""
    known = series.filter(pc.is_valid(series.column(name))).sort_by("at_s")
    at, values = known.column("at_s").to_numpy(), known.column(name).to_numpy()
    return np.asarray(values[np.clip(np.searchsorted(at, grid, side="right") - 1, 0, None)], dtype=float)


def _between(series: pa.Table, begin: float, end: float) -> tuple[pa.Array, pa.Array]:
    at = series.column("at_s")
    return pc.greater_equal(at, begin), pc.less_equal(at, end)


def _changes(column: pa.ChunkedArray) -> int:
    known = [value for value in column.to_pylist() if value]
    return sum(a != b for a, b in pairwise(known))


def _down_s(within: pa.Table) -> float:
    ordered = within.sort_by("at_s")
    at = ordered.column("at_s").to_numpy()
    down = np.array([running is False for running in ordered.column("running").to_pylist()])
    return float(np.sum(np.diff(at)[down[:-1]])) if len(at) > 1 else 0.0
