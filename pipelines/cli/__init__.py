"""`sluice`: one command for people and machines.

Exit codes: 0 done, 1 failed, 2 unusable arguments or input, 3 no feasible answer. With `--json` one JSON document goes
to standard output and nothing else; messages and progress go to standard error.
"""

import sys

import click
import typer
from rich.console import Console

from models.errors import Infeasible, InvalidInput, SluiceError

app = typer.Typer(
    name="sluice",
    help="Plan the capacity of a streaming job: parallelism, memory and placement in one explainable plan.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

EXIT_FAILED, EXIT_USAGE, EXIT_INFEASIBLE = 1, 2, 3


def main() -> None:
    """Entry point of the `sluice` command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are one message on standard error, never a traceback."""
    from pipelines.cli import commands  # noqa: F401  (registers the commands on `app`)

    stderr = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        return app(args=arguments, standalone_mode=False) or 0
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        error.show(sys.stderr)
        return error.exit_code
    except Infeasible as error:
        stderr.print(f"no feasible answer: {error}")
        return EXIT_INFEASIBLE
    except InvalidInput as error:
        stderr.print(f"error: {error}")
        return EXIT_USAGE
    except (SluiceError, OSError) as error:
        stderr.print(f"failed: {error}")
        return EXIT_FAILED
    except (KeyboardInterrupt, click.Abort):
        stderr.print("stopped; what was measured is kept, and the same command goes on from there")
        return 130
