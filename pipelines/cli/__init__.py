"""`sluice`: one command for people and machines.

Exit codes: 0 done, 1 failed, 2 unusable arguments or input, 3 no feasible answer. With `--json` one JSON document goes
to standard output and nothing else; messages and progress go to standard error.
"""

import sys

import typer
from rich.console import Console

from models.errors import Infeasible, InvalidInput, SluiceError
from pipelines.cli.commands import register

app = typer.Typer(
    name="sluice",
    help="Plan the capacity of a streaming job: parallelism, memory and placement in one explainable plan.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _sluice() -> None:
    # Without this, typer takes an app with one command for that command.
    ...


EXIT_FAILED, EXIT_USAGE, EXIT_INFEASIBLE, EXIT_STOPPED = 1, 2, 3, 130


def main() -> None:
    """Entry point of the `sluice` command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are one message on standard error, never a traceback."""
    register(arguments)
    stderr = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        app(args=arguments, prog_name="sluice")
    except SystemExit as exit_:  # typer has printed what is wrong with the arguments
        if exit_.code == EXIT_STOPPED:
            stderr.print("stopped; what was measured is kept, and the same command goes on from there")
        return exit_.code if isinstance(exit_.code, int) else EXIT_FAILED
    except Infeasible as error:
        stderr.print(f"no feasible answer: {error}")
        return EXIT_INFEASIBLE
    except InvalidInput as error:
        stderr.print(f"error: {error}")
        return EXIT_USAGE
    except (SluiceError, OSError) as error:
        stderr.print(f"failed: {error}")
        return EXIT_FAILED
    except MemoryError:
        stderr.print("failed: this takes more memory than there is; ask for less, or use a larger machine")
        return EXIT_FAILED
    return 0
