"""The plot of a schedule: what is expected to arrive, and what is planned for, over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from models.calendar.demand import ExpectedRates, cells, demand
from models.calendar.rules import GRID_S
from models.calendar.schedule import ScheduledRate
from models.errors import InvalidInput
from pipelines.calendar.scheduling import JobCalendar


@dataclass(frozen=True)
class ScheduleCurves:
    """What the plot shows; times of the calendar's zone, rates in records/s."""

    times: tuple[datetime, ...]
    """Of the grid."""
    expected: tuple[float, ...]
    planned_from: tuple[datetime, ...]
    """Begin of each interval, and the end of the last one."""
    planned: tuple[float, ...]
    """Of each interval, and once more at the end."""


def curves(calendar: JobCalendar, intervals: Sequence[ScheduledRate]) -> ScheduleCurves:
    """What the plot of a schedule shows."""
    zone, begin = calendar.rules.zone, intervals[0].starts_at
    season, _ = calendar.season()
    count = cells((intervals[-1].ends_at - begin).total_seconds())
    expected: ExpectedRates = demand(calendar.rules, season, begin, count)
    at = [begin + timedelta(seconds=i * GRID_S) for i in range(count)]
    edges = [*(one.starts_at for one in intervals), intervals[-1].ends_at]
    return ScheduleCurves(
        times=tuple(one.astimezone(zone) for one in at),
        expected=tuple(map(float, expected.rates)),
        planned_from=tuple(edge.astimezone(zone) for edge in edges),
        planned=(*(one.rate for one in intervals), intervals[-1].rate),
    )


def write_figure(calendar: JobCalendar, intervals: Sequence[ScheduledRate], path: Path) -> None:
    """Write the plot as SVG.

    Raises:
        InvalidInput: the file cannot be written, or has another suffix.
    """
    if path.suffix != ".svg":
        raise InvalidInput(f"the plot is an SVG file, so its name must end with .svg, but got {path.name!r}")
    import matplotlib.dates as dates
    from matplotlib.figure import Figure

    shown, zone = curves(calendar, intervals), calendar.rules.zone
    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    axes.step(shown.planned_from, shown.planned, where="post", label="planned for", linewidth=1.5)  # type: ignore[arg-type]
    axes.fill_between(shown.times, shown.expected, step="post", alpha=0.3, label="expected")  # type: ignore[arg-type]
    concise = dates.ConciseDateFormatter(axes.xaxis.get_major_locator(), tz=zone)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_formatter(concise)
    axes.set(ylabel="records/s", title=f"{calendar.job}: schedule, times of {calendar.rules.time_zone}", ylim=(0, None))
    axes.legend(frameon=False)
    try:
        figure.savefig(path, format="svg", metadata={"Date": None})
    except OSError as error:
        raise InvalidInput(f"the plot cannot be written to {path}: {error}") from None
