"""`sluice scale`: one decision of a scaling policy."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from models.scaling.ds2 import ds2
from models.scaling.policy import Decision
from models.scaling.rates import Rates
from pipelines.cli import app
from pipelines.cli.output import JsonOption, console, print_json
from pipelines.files import read_as


class Policy(StrEnum):
    DS2 = "ds2"


@app.command()
def scale(
    rates: Annotated[Path, typer.Argument(metavar="RATES", help="Edges, source rates and operators, YAML or JSON.")],
    policy: Annotated[Policy, typer.Option(help="How to decide.")] = Policy.DS2,
    as_json: JsonOption = False,
) -> None:
    """Decide the parallelism of every operator from measured rates."""
    read = read_as(rates, Rates)
    decision = {Policy.DS2: ds2}[policy](read)
    if as_json:
        print_json({"policy": policy.value, **decision.model_dump(mode="json")})
    else:
        _print_decision(read, decision)


def _print_decision(rates: Rates, decision: Decision) -> None:
    table = Table(title="Decision")
    table.add_column("operator")
    for heading in ("now", "tasks", "exact"):
        table.add_column(heading, justify="right")
    table.add_column("why")
    for name, tasks in decision.parallelism.items():
        exact = f"{decision.exact[name]:,.3f}" if name in decision.exact else "-"
        table.add_row(name, str(rates.operators[name].parallelism), str(tasks), exact, decision.reasons[name])
    console.print(table)
