"""`sluice scale`: one decision of a scaling policy."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from models.scaling.policies import POLICIES, make_policy
from models.scaling.policy import Decision
from models.scaling.rates import Rates
from pipelines.cli import app
from pipelines.cli.options.settings import policy_settings
from pipelines.cli.options.standard import JsonOption
from pipelines.cli.output import console, print_json
from pipelines.inputs.parsing.files import read_as
from pipelines.terminal.tables import table


@app.command()
def scale(
    rates: Annotated[Path, typer.Argument(metavar="RATES", help="Edges, source rates and operators, YAML or JSON.")],
    policy: Annotated[str, typer.Option(metavar="P", help=f"How to decide: {', '.join(POLICIES)}.")] = "ds2",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="SETTING=VALUE", help="A setting of the policy; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Decide the parallelism of each operator by a policy. The policy gets one set of rates, without history."""
    decides = make_policy(policy, policy_settings(settings or []))
    read = read_as(rates, Rates)
    decision = decides.decide(read)
    if as_json:
        print_json({"policy": policy, **decision.model_dump(mode="json")})
    else:
        _print_decision(read, decision)


def _print_decision(rates: Rates, decision: Decision) -> None:
    memory = ["MiB a task"] if decision.memory_mb else []
    rows = table("operator", "now", "tasks", "exact", *memory, "why", wrap=("operator", "why"))
    for name, tasks in decision.parallelism.items():
        row = [escape(name), str(rates.operators[name].parallelism), str(tasks), _amount(decision.exact.get(name), 3)]
        if decision.memory_mb:
            row.append(_amount(decision.memory_mb.get(name), 0))
        rows.add_row(*row, escape(decision.reasons[name]))
    console.print(rows)


def _amount(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
