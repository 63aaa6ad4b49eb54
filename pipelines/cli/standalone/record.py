"""`sluice record`: a sample of a Kafka topic as a Parquet file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import Progress as Bars

from models.errors import InvalidInput
from pipelines.cli import app
from pipelines.cli.options.duration import seconds_of
from pipelines.cli.options.standard import JsonOption
from pipelines.cli.output import console, print_json, progress_console
from pipelines.terminal.tables import table

if TYPE_CHECKING:
    from testbeds.kafka.recording.topic_file import RecordedTopic

LEAST_S: Final = 1.0
SUFFIX: Final = ".parquet"


@app.command()
def record(
    topic: Annotated[str, typer.Option(metavar="NAME", help="Topic to sample.")],
    bootstrap: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT", help="Address of a Kafka broker, several separated by commas, or connection:NAME."
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Parquet file to write; an existing one is replaced.")],
    records: Annotated[int, typer.Option(metavar="N", min=1, help="Most records to take.")] = 100_000,
    duration: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="TIME",
            help="Take records that arrive from now on, for so long: 90s, 3m, 1h. Default: the last ones that are there.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        str,
        typer.Option(
            metavar="auto|json|none", help="Whether the fields of JSON values become columns; auto: if all are."
        ),
    ] = "auto",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--setting",
            metavar="KEY=VALUE",
            help="Setting of the connection (librdkafka), such as security.protocol=SSL; may be given several times.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Record a sample of a Kafka topic. The file can be replayed, and `sluice skew` reads it.

    Reads only: no consumer group is left behind.
    """
    if out.suffix.lower() != SUFFIX:
        raise InvalidInput(f"the file to write must end in {SUFFIX}, but got {out.name!r}")
    for_s = None if duration is None else seconds_of(duration, LEAST_S)
    # The client and Arrow take a second to import; wrong options are reported before.
    from testbeds.kafka.named import kafka_connection
    from testbeds.kafka.recording.sampling import TopicRange
    from testbeds.kafka.recording.topic_file import ValueColumns, record

    kinds = [kind.value for kind in ValueColumns]
    if values not in kinds:
        raise InvalidInput(f"--values must be one of {', '.join(kinds)}, but got {values!r}")
    connection = kafka_connection(bootstrap, _pairs(settings or []))
    with _progress() as report:
        found = record(connection, topic, out, TopicRange(records, for_s), ValueColumns(values), report)
    if as_json:
        print_json(
            {
                "topic": topic,
                "file": str(out),
                "records": found.records,
                "partitions": {str(number): count for number, count in found.partitions.items()},
                "columns": list(found.columns),
                "remarks": list(found.remarks),
            }
        )
    else:
        _print(found)


def _pairs(settings: list[str]) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in settings]
    for key, equals, _ in pairs:
        if not (key and equals):
            raise InvalidInput(f"a setting must be KEY=VALUE, but got {key!r}")
    return {key: value for key, _, value in pairs}


@contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    """A bar on a terminal; otherwise nothing, since a sample takes seconds."""
    with Bars(console=progress_console, transient=True, disable=not progress_console.is_terminal) as bars:
        bar = bars.add_task("connecting", total=1.0)
        yield lambda what, share: bars.update(bar, description=what, completed=share)


def _print(found: "RecordedTopic") -> None:
    console.print(f"[bold]{found.records:,} records[/bold] of {found.topic} in {found.file}", soft_wrap=True)
    rows = table("partition", "records", "share")
    for number, count in found.partitions.items():
        rows.add_row(str(number), f"{count:,}", f"{count / found.records:.1%}")
    console.print(rows)
    console.print(f"columns: {', '.join(found.columns)}", soft_wrap=True, markup=False)
    for remark in found.remarks:
        progress_console.print(f"remark: {remark}", soft_wrap=True, markup=False)
