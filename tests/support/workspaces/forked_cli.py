"""`sluice` in processes of its own that have imported what a run imports: ten seconds of CPU that each would need."""

import os
import sys
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Final

IMPORTED: Final = ["great_expectations", "mlflow", "pyspark.sql", "pipelines.cli.plans.plan", "workspaces.forked_cli"]


def forked_context() -> ForkServerContext:
    """Starts processes by forking one that has nothing but imported packages."""
    context = get_context("forkserver")
    context.set_forkserver_preload(IMPORTED)
    return context


def start_cli(context: ForkServerContext, arguments: list[str], log: Path) -> ForkServerProcess:
    """Start `sluice` in a session of its own, whose id is the process's.

    Args:
        log: takes what it prints.
    """
    process = context.Process(target=_cli, args=(arguments, str(log)))
    process.start()
    return process


def _cli(arguments: list[str], log: str) -> None:
    os.setsid()
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(out, sys.stdout.fileno())
    os.dup2(out, sys.stderr.fileno())
    from pipelines.cli import main

    sys.argv = ["sluice", *arguments]
    main()
