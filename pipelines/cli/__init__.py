"""`sluice`: one command for people and machines.

Exit codes: 0 done, 1 failed, 2 unusable arguments or input, 3 no feasible answer, 4 packages of an extra are not
installed, 130 stopped by Ctrl-C, 143 by SIGTERM. With `--json` one JSON document goes to standard output and nothing else;
`autopilot run`, `autopilot all` and `autopilot log` print one a line, and `autopilot metrics` has no `--json`. Messages and
progress go to standard error.
"""

import sys
from typing import Final

from models.errors import Infeasible, InvalidInput, SluiceError
from pipelines.cli.commands import app
from pipelines.cli.extras import MissingExtra, missing_extra

__all__ = ["Stopped", "app", "main", "run"]

EXIT_FAILED, EXIT_USAGE, EXIT_INFEASIBLE, EXIT_MISSING_EXTRA = 1, 2, 3, 4
EXITS_STOPPED = (130, 143)
"""By Ctrl-C, and by SIGTERM."""


MEASURING: Final = (["plan"], ["calibrate"])
"""Commands that store each measurement as it is made."""


class Stopped(Exception):
    """The command was stopped by Ctrl-C; its message says what stays as it is, and how to resume."""


def main() -> None:
    """Entry point of the `sluice` command."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code; errors are one message on standard error, never a traceback."""
    try:
        app(args=arguments, prog_name="sluice")
    except SystemExit as exit_:  # typer has printed what is wrong with the arguments
        if exit_.code in EXITS_STOPPED:
            measures = arguments[:1] in MEASURING and "--from-running" not in arguments
            resumes = "; measurements are stored, and the same command resumes from them" if measures else ""
            _say(f"stopped{resumes}")
        return exit_.code if isinstance(exit_.code, int) else EXIT_FAILED
    except Stopped as error:
        _say(f"stopped; {error}")
        return EXITS_STOPPED[0]
    except Infeasible as error:
        _say(f"no feasible answer: {error}")
        return EXIT_INFEASIBLE
    except InvalidInput as error:
        _say(f"error: {error}")
        return EXIT_USAGE
    except MissingExtra as error:
        _say(f"not installed: {error}")
        return EXIT_MISSING_EXTRA
    except ModuleNotFoundError as error:
        extra = missing_extra(error)
        if extra is None:
            raise
        _say(f"not installed: {extra}")
        return EXIT_MISSING_EXTRA
    except (SluiceError, OSError) as error:
        _say(f"failed: {error}")
        return EXIT_FAILED
    except MemoryError:
        _say("failed: out of memory; ask for less, or use a larger machine")
        return EXIT_FAILED
    return 0


def _say(message: str) -> None:
    print(message, file=sys.stderr)
