"""Output of tools goes to a log file; the terminal shows the progress of the stages and, at the end, the plan."""

import os
from pathlib import Path
from typing import Final

from rich.console import Console

LOG_FOLDER: Final = Path(".sluice/logs")


def divert_output(log: Path) -> tuple[Console, Console]:
    """Send the output of this process and its children to `log`, until the process ends.

    The file descriptors are redirected, since the JVM writes to them too. Returns consoles on the original standard output
    and standard error.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    output, remarks = (os.fdopen(os.dup(descriptor), "w", buffering=1) for descriptor in (1, 2))
    with log.open("w") as sink:
        for descriptor in (1, 2):
            os.dup2(sink.fileno(), descriptor)
    return Console(file=output, highlight=False), Console(file=remarks, highlight=False, soft_wrap=True)
