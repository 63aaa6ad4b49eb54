"""`sluice skew`: the key distribution of a recorded stream, and what it makes of the tasks' shares."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.markup import escape

from models.keys.groups import MOST_KEY_GROUPS, check_parallelism
from models.keys.sketch import KeyedBy
from pipelines.cli import app
from pipelines.cli.options.standard import JsonOption
from pipelines.cli.output import console, print_json
from pipelines.inputs.parsing.files import validate_as
from pipelines.terminal.tables import table

if TYPE_CHECKING:
    from models.keys.distribution import ChangeOverTime, KeyDistribution, Spread, Tail

PARALLELISM: Final = (1, 2, 4, 8, 16, 32, 64)
"""What shares are shown for if no parallelism is given."""
BAR: Final = 24
"""Characters of the longest bar."""


@app.command()
def skew(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Recorded stream: Parquet, CSV or JSON lines; or a folder.")
    ],
    key: Annotated[
        str,
        typer.Option(metavar="EXPR", help="Key: a Spark SQL expression over the columns; struct(a, b) for several."),
    ],
    parallelism: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=MOST_KEY_GROUPS, help="Show the share of each of N tasks.", show_default=False
        ),
    ] = None,
    max_parallelism: Annotated[
        int | None,
        typer.Option(
            metavar="G",
            min=1,
            max=MOST_KEY_GROUPS,
            help="The job's maximum parallelism (key groups); default: Flink's for each parallelism.",
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        str | None, typer.Option(metavar="COND", help="Count only records with this condition.", show_default=False)
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="EXPR", help="Time of a record, a TIMESTAMP: shows the change over time.", show_default=False
        ),
    ] = None,
    window: Annotated[float, typer.Option(metavar="S", help="Length of the windows of time, seconds.")] = 1.0,
    keyed_by: Annotated[KeyedBy, typer.Option(help="What computes the key: Flink SQL, or keyBy of a DataStream.")] = (
        KeyedBy.SQL
    ),
    columns: Annotated[
        str | None,
        typer.Option(metavar="DDL", help="Columns of CSV or JSON: 'auction BIGINT, at TIMESTAMP'.", show_default=False),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Show the key distribution of a recorded stream. Also shows the fullest task's share at each parallelism."""
    # The models and Spark take seconds to import; help and completion should not wait for them.
    from models.keys.distribution import key_distribution
    from pipelines.keys.recorded import sketch_of
    from pipelines.keys.stream import RecordedStream

    given = {"file": file, "key": key, "where": where, "time": time, "keyed_by": keyed_by, "columns": columns}
    stream = validate_as({**given, "window_s": window}, RecordedStream, origin="the options")
    most = MOST_KEY_GROUPS if max_parallelism is None else max_parallelism
    wanted = [p for p in PARALLELISM if p <= most] if parallelism is None else [parallelism]
    check_parallelism(wanted[-1], most)
    found = key_distribution(sketch_of(stream, wanted, max_parallelism), wanted, max_parallelism, window)
    if as_json:
        print_json({"file": file, "key": key, "keyed_by": keyed_by.value, **found.model_dump(mode="json")})
    else:
        _print(found, one_task_a_row=parallelism is not None)


def _print(found: "KeyDistribution", *, one_task_a_row: bool) -> None:
    distinct = found.distinct_keys
    about = "" if distinct.low == distinct.high else f" ({distinct.low:,.0f} to {distinct.high:,.0f})"
    console.print(f"[bold]{found.records:,} records[/bold], {distinct.value:,.0f} distinct keys{about}")
    _print_heavy_hitters(found)
    console.print(_tail_in_words(found.tail), soft_wrap=True)
    if one_task_a_row:
        _print_tasks(found)
    _print_shares(found)
    if found.change is not None:
        console.print(*_change_in_words(found.change), sep="\n", soft_wrap=True)


def _print_heavy_hitters(found: "KeyDistribution") -> None:
    if not found.heavy_hitters:
        return
    rows = table("key", "share", "at most", "", wrap=("key", ""))
    largest = found.heavy_hitters[0].high
    for one in found.heavy_hitters:
        name = ", ".join(str(part) for part in one.key) if isinstance(one.key, tuple) else str(one.key)
        rows.add_row(escape(name), f"{one.low:.3%}", f"{one.high:.3%}", _bar(one.low, largest))
    console.print(rows)


def _tail_in_words(tail: "Tail") -> str:
    law = "no Zipf exponent fits them"
    if tail.exponent is not None:
        law = f"Zipf exponent {tail.exponent.value:.2f} ({tail.exponent.low:.2f} to {tail.exponent.high:.2f})"
    return f"the other {tail.keys:,.0f} keys: {tail.share:.1%} of the records; {law}"


def _print_tasks(found: "KeyDistribution") -> None:
    (shares,) = found.shares
    rows = table("task", "records", "share", "", wrap=("",))
    for task, records in enumerate(shares.records):
        share = records / found.records
        rows.add_row(str(task), f"{records:,}", f"{share:.2%}", _bar(share, shares.fullest_share))
    console.print(rows)


def _print_shares(found: "KeyDistribution") -> None:
    timed = found.change is not None
    rows = table(
        "tasks", "key groups", "fullest", "ideal", "times ideal", *(["in a window", "at most"] if timed else [])
    )
    for one in found.shares:
        shown = [f"{one.parallelism}", f"{one.key_groups:,}", f"{one.fullest_share:.2%}", f"{one.ideal_share:.2%}"]
        rows.add_row(*shown, f"{one.fullest_share / one.ideal_share:.2f}", *_quantiles(one.in_windows))
    console.print(rows)


def _quantiles(spread: "Spread | None") -> Iterator[str]:
    if spread is not None:
        yield f"{spread.median:.2%}"
        yield f"{spread.highest:.2%}"


def _change_in_words(change: "ChangeOverTime") -> Iterator[str]:
    drawn = "" if change.counted_share == 1.0 else f", drawn from {change.windows / change.counted_share:,.0f}"
    yield f"over time: {change.windows:,} windows of {change.window_s:g} s{drawn}"
    yield (
        f"the fullest key group has {change.fullest_group_overall:.2%} of all records, and in a window "
        f"{change.fullest_group.median:.2%} (95 % of the records: up to {change.fullest_group.p95:.2%})"
    )
    stays = "" if change.stays_fullest is None else f"; the next window has the same one in {change.stays_fullest:.0%}"
    yield f"{change.groups_once_fullest:,} key groups are the fullest in some window{stays}"


def _bar(share: float, largest: float) -> str:
    return "█" * max(round(BAR * share / largest), 1) if share > 0 else ""
