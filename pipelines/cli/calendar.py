"""`sluice calendar`: the rates that a job's calendar plans for, when, and what that costs and saves."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Group
from rich.markup import escape
from rich.text import Text

from models.errors import InvalidInput, SluiceError
from models.wording import amount
from pipelines.cli import app
from pipelines.cli.extras import missing_extra
from pipelines.cli.options.standard import JsonOption, WorkspaceOption
from pipelines.cli.output import console, print_json, progress_console
from pipelines.store.workspace import Workspace
from pipelines.terminal.tables import table

if TYPE_CHECKING:
    from models.calendar.schedule import ScheduledRate
    from pipelines.calendar.costs import ScheduleCost, SizedRate
    from pipelines.calendar.scheduling import JobCalendar, WeekSchedule

BAR: Final = 20
"""Characters of the longest bar."""
MOST_DAYS: Final = 92


@app.command()
def calendar(
    job: Annotated[
        str, typer.Argument(metavar="JOB", help="Job that has a plan, job of the catalogue, or path of a job file.")
    ],
    days: Annotated[int, typer.Option(min=1, max=MOST_DAYS, help="Days to show.")] = 7,
    rates: Annotated[
        str | None,
        typer.Option(
            metavar="HISTORY.csv",
            help="History of the rate, with the columns time and rate, instead of the one that the job's file names.",
            show_default=False,
        ),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="Begin, for example 2026-11-23 or 2026-11-27T08:00, in the calendar's time zone; default: now.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option(metavar="FILE.svg", help="Write a plot of the schedule to this file.", show_default=False),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the rates that a job's calendar plans for. Also shows what that costs, and saves against the peak all day."""
    from pipelines.calendar.scheduling import JobCalendar
    from pipelines.following.jobs import file_beside_job, job_file
    from pipelines.inputs.catalogue import file_of_job, load_job
    from pipelines.store.plans import PlanStore

    place = Workspace(workspace)
    planned = PlanStore(place).jobs()
    if job in planned:  # its name is known here, wherever its file is
        described, folder = job_file(place, job), file_beside_job(place, job, "any").parent
    else:
        described, folder = load_job(job), file_of_job(job).parent
    found = JobCalendar.of(place, described, folder, None if rates is None else Path(rates))
    first = _begin(begin, found)
    week, intervals = found.ahead(first, first + timedelta(days=days))
    name = described.name
    sized, cost, why_not = _cost(place, name, intervals) if name in planned else ({}, None, f"{name} has no plan yet")
    if plot is not None:
        from pipelines.calendar.figure import write_figure

        write_figure(found, intervals, Path(plot))
        progress_console.print(f"plot: {escape(plot)}", soft_wrap=True)
    if as_json:
        print_json(_document(week, intervals, sized, cost, why_not))
    else:
        console.print(_view(found, week, intervals, sized, cost, why_not))


def _begin(text: str | None, calendar: "JobCalendar") -> datetime:
    from models.calendar.demand import on_grid
    from models.calendar.rules import instant

    if text is None:
        return on_grid(datetime.now(UTC))
    try:
        return on_grid(instant(datetime.fromisoformat(text), calendar.rules.zone))
    except (ValueError, OverflowError):
        raise InvalidInput(f"--from must be a time such as 2026-11-27T08:00, but got {text!r:.40}") from None


def _cost(
    place: Workspace, job: str, intervals: "list[ScheduledRate]"
) -> "tuple[dict[float, SizedRate], ScheduleCost | None, str | None]":
    """What each rate takes, what the schedule costs, and why that is unknown."""
    from pipelines.calendar.costs import cost_of
    from pipelines.calendar.pricing import sized_rates

    try:
        sized = sized_rates(place, job, [one.rate for one in intervals])
    except SluiceError as error:
        return {}, None, str(error)
    except ModuleNotFoundError as error:
        if (extra := missing_extra(error)) is None:
            raise
        return {}, None, str(extra)
    cost = cost_of(intervals, sized)
    return sized, cost, next((size.why_not for size in sized.values() if size.why_not), None)


def _document(
    week: "WeekSchedule",
    intervals: "list[ScheduledRate]",
    sized: "Mapping[float, SizedRate]",
    cost: "ScheduleCost | None",
    why_not: str | None,
) -> dict[str, Any]:
    def interval(one: "ScheduledRate") -> dict[str, Any]:
        size = sized.get(one.rate)
        price = None if size is None else size.price_per_hour
        taken = {
            "slots": None if size is None else size.slots,
            "price_per_hour": None if price is None else float(price),
        }
        return one.model_dump(mode="json") | taken

    return {
        "job": week.job,
        "time_zone": week.time_zone,
        "season": week.season,
        "season_from": week.season_from,
        "before_s": week.before_s,
        "rescale_s": week.rescale_s,
        "intervals": [interval(one) for one in intervals],
        "cost": None
        if cost is None
        else {
            "slot_hours": cost.slot_hours,
            "peak_slot_hours": cost.peak_slot_hours,
            "saved_share": cost.saved_share,
            "dollars": cost.dollars,
            "peak_dollars": cost.peak_dollars,
            "saved_dollars": cost.saved_dollars,
        },
        "cost_unknown": why_not,
    }


def _view(
    calendar: "JobCalendar",
    week: "WeekSchedule",
    intervals: "list[ScheduledRate]",
    sized: "Mapping[float, SizedRate]",
    cost: "ScheduleCost | None",
    why_not: str | None,
) -> Group:
    from pipelines.calendar.record import for_what

    zone, highest = calendar.rules.zone, max(one.rate for one in intervals)
    columns = ("plan from", "for", "records/s", "", *(["slots", "USD/h"] if sized else []))
    rows = table(*columns, text=("for", ""))
    for one in intervals:
        taken = sized.get(one.rate)
        slots = "" if taken is None or taken.slots is None else str(taken.slots)
        price = "" if taken is None or taken.price_per_hour is None else f"{taken.price_per_hour:.2f}"
        bar = "█" * max(1, round(BAR * one.rate / highest))
        cells = (f"{one.starts_at.astimezone(zone):%a %d %b %H:%M}", for_what(one, zone), amount(one.rate), bar)
        rows.add_row(*map(Text, (*cells, *((slots, price) if sized else ()))))
    season = {"none": "no season", "day": "a season of a day", "week": "a season of a week"}[week.season]
    lead = (
        f"A plan is made {(week.before_s + week.rescale_s) / 60:,.0f} minutes or more before its rate: {week.rescale_s:,.0f} s "
        f"for the change, and in force {week.before_s / 60:,.0f} minutes ahead."
    )
    return Group(
        Text(f"{week.job}: {season}, from {week.season_from}; times of {week.time_zone}", style="bold"),
        rows,
        Text(lead),
        Text(_cost_in_words(cost, why_not)),
    )


def _cost_in_words(cost: "ScheduleCost | None", why_not: str | None) -> str:
    if cost is None:
        return f"What it costs is unknown: {why_not}"
    slots = f"{cost.slot_hours:,.0f} slot hours; {cost.peak_slot_hours:,.0f} with the peak's plan all the time"
    if cost.dollars is None or cost.peak_dollars is None or not cost.peak_dollars:
        return f"{slots}: {cost.saved_share:.0%} saved. The cluster states no price."
    saved = cost.peak_dollars - cost.dollars
    return (
        f"{slots}. {cost.dollars:,.2f} USD instead of {cost.peak_dollars:,.2f}: {saved:,.2f} USD "
        f"({saved / cost.peak_dollars:.0%}) saved."
    )
