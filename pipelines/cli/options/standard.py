"""Options that several commands have, each declared once."""

from typing import Annotated

import typer

from models.errors import InvalidInput

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON document a line on standard output.")]
WorkspaceOption = Annotated[
    str | None,
    typer.Option(
        "--workspace",
        help="Folder or fsspec URL of the workspace; default: $SLUICE_WORKSPACE, else .sluice/workspace.",
        show_default=False,
    ),
]
KafkaOption = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Kafka broker of the topics that the running job reads, or connection:NAME, to count what waits there; default: "
        "as its sources report it, which is late while they are held back.",
        show_default=False,
    ),
]
PrometheusOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Prometheus that scrapes Flink's PrometheusReporter, or connection:NAME: what it has of the last --for is read "
        "at once, instead of watching REST.",
        show_default=False,
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        help="Context of the kubeconfig, with --kubernetes, or connection:NAME; default: its current one.",
        show_default=False,
    ),
]
PrometheusTokenOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Environment variable with a bearer token for Prometheus.", show_default=False),
]
TokenVariableOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Environment variable with a bearer token for Flink's REST interface.",
        show_default=False,
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option("--by", help="Name of the person who decides; default: the account's name.", show_default=False),
]


def account() -> str:
    """The name of the account that runs the command."""
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):
        raise InvalidInput("the account that runs this command has no name; give a name with --by NAME") from None
