"""The commands by name: the module of each, imported when it is called, and its line in the help."""

from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True)
class CommandEntry:
    """Where a command is defined, and its line in `sluice --help`."""

    module: str
    summary: str


COMMANDS: Final = {
    "plan": CommandEntry("plans.plan", "Plan a job for a target rate: measure it small, plan it large."),
    "replan": CommandEntry("plans.plan", "Replan a job for another rate, without new measurements."),
    "calendar": CommandEntry("calendar", "Show the rates that a job's calendar plans for."),
    "plans": CommandEntry("plans.plans", "List, show, compare, roll back, unpin, export and apply plans."),
    "jobs": CommandEntry("jobs", "List the jobs of the catalogue, or show one."),
    "clusters": CommandEntry("jobs", "List the clusters of the catalogue, or show one."),
    "models": CommandEntry("models", "List, show, approve and reject capacity models."),
    "configure": CommandEntry("standalone.configuration", "Divide task slots among operators (BIDS2)."),
    "fit": CommandEntry("standalone.capacity", "Fit growth laws to measurements."),
    "size": CommandEntry("standalone.capacity", "Predict the task slots that a rate needs."),
    "record": CommandEntry("standalone.record", "Record a sample of a Kafka topic."),
    "skew": CommandEntry("standalone.skew", "Show the key distribution of a recorded stream."),
    "scale": CommandEntry("standalone.scale", "Decide the parallelism of each operator by a policy."),
    "place": CommandEntry("standalone.placement", "Choose a worker for each task."),
    "tune": CommandEntry("standalone.placement", "Find the least thresholds that a placement can meet."),
    "thresholds": CommandEntry("plans.thresholds", "Tune placement thresholds ahead of rate changes."),
    "evaluate": CommandEntry("evaluate", "Compare scaling policies on hours of simulated workload."),
    "observe": CommandEntry(
        "running_jobs.observe",
        "Show how a running job does, unchanged: rates, skew, lag, what bounds it, and how far it would go.",
    ),
    "autopilot": CommandEntry("running_jobs.autopilots", "Let a scaling policy act on a running job, within limits."),
    "drift": CommandEntry("plans.drift", "Compare production samples with the measurements of the plan."),
    "calibrate": CommandEntry("calibrate", "Fit the simulator to a real cluster."),
}
"""In the order of the help. A test holds that each summary is the first sentence of the command's own help."""


class CommandGroup(TyperGroup):
    """Lists all commands from `COMMANDS`, and imports a command's module only when the command is called.

    The models behind some commands take seconds to import, which help and completion do not need.
    """

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        stubs = {name: TyperCommand(name=name, help=entry.summary) for name, entry in COMMANDS.items()}
        self.commands = {**stubs, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        if args and args[0] in COMMANDS:
            self.commands[args[0]] = load_command(args[0])
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pipelines.cli.options.misuse import explain

            explain(error)
            raise


app = typer.Typer(
    name="sluice",
    cls=CommandGroup,
    help="Plan the capacity of a streaming job: parallelism, memory and placement in one explainable plan.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def load_command(name: str) -> Any:
    """The command with its options; importing its module registers it on the app."""
    import_module(f"pipelines.cli.{COMMANDS[name].module}")
    return typer.main.get_group(app).commands[name]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"sluice {version('sluice')}")
        raise typer.Exit


@app.callback()
def _options_of_every_command(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...
