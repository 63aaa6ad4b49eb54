"""`sluice configure`: task slots divided among operators (BIDS2), on a file."""

from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import BaseModel, ConfigDict, Field
from rich.markup import escape

from models.capacity.bids2 import Bids2Result, bids2
from models.capacity.observation import OperatorRates
from models.schema import PositiveInt
from models.wording import amount
from pipelines.cli import app
from pipelines.cli.options.standard import JsonOption
from pipelines.cli.output import console, print_json
from pipelines.inputs.parsing.files import read_as
from pipelines.terminal.tables import table

MOST_SLOTS: Final = 1_000_000


class InstanceOperator(OperatorRates):
    """An operator of a BIDS2 instance. Published instances carry further keys (ids, inputs), which are passed over."""

    model_config = ConfigDict(extra="ignore")
    max_parallelism: PositiveInt | None = Field(None, description="No more tasks than this.")


class Instance(BaseModel):
    """A BIDS2 instance: the operators without the sources. Further keys are passed over, as in published files."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    operators: tuple[InstanceOperator, ...] = Field(min_length=1)


@app.command()
def configure(
    instance: Annotated[Path, typer.Option(metavar="FILE", help="The operators with their rates, YAML or JSON.")],
    slots: Annotated[int, typer.Option(metavar="N", max=MOST_SLOTS, help="Task slots to divide; all are used.")],
    as_json: JsonOption = False,
) -> None:
    """Divide task slots among operators (BIDS2). The answer has the highest source rate that is possible."""
    operators = read_as(instance, Instance).operators
    limits = {o.name: o.max_parallelism for o in operators if o.max_parallelism is not None}
    best = bids2(operators, slots, limits)
    if as_json:
        print_json(best)
    else:
        _print_configuration(operators, best)


def _print_configuration(operators: tuple[InstanceOperator, ...], best: Bids2Result) -> None:
    console.print(f"source rate {amount(best.source_rate)} records/s")
    rows = table("operator", "tasks", "busyness at that rate", wrap=("operator",))
    for operator in operators:
        tasks = best.parallelism[operator.name]
        load = best.source_rate * operator.records_in_per_source_record / (tasks * operator.true_rate_per_task)
        limits = " (limits)" if operator.name == best.limited_by else ""
        rows.add_row(escape(operator.name), str(tasks), f"{load:.0%}{limits}")
    console.print(rows)
