"""A process beside the embedded Airflow that runs the stages.

Airflow takes as long to start as Spark, MLflow and Great Expectations together, so both start at the same time. Without
this process (in a deployment, and where a DAG file is run by itself) the stages run in the process of their task.
"""

import atexit
import os
import signal
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from inspect import isfunction
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final, TypeVar

from sluice_airflow.embedded.output import LOG_FOLDER, divert_output

Result = TypeVar("Result")

IMPORTED: Final = {
    "capacity_plan": ("great_expectations", "sklearn.linear_model", "models.placement", "pipelines.stages.publish"),
    "replan": ("pipelines.planning.replan",),
}
"""Name of the DAG -> slow imports of its stages."""
ON_SPARK: Final = frozenset({"capacity_plan"})

SECONDS_TO_END: Final = 10.0

_running: Connection | None = None


def start(dag: str) -> None:
    """Start the process, and let it import the modules of the DAG's stages."""
    global _running
    ours, theirs = get_context("spawn").Pipe()
    process = get_context("spawn").Process(target=_serve, args=(theirs, dag), daemon=True)
    process.start()
    theirs.close()
    _running = ours
    atexit.register(_stop, ours, process)


def _stop(requests: Connection, process: BaseProcess) -> None:
    """Let the process end by itself, so that it releases its resources."""
    requests.close()
    process.join(SECONDS_TO_END)


def call(function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function of a module in the process beside this one, or in this process if none was started.

    Raises:
        ChildProcessError: the process ended before it answered.
        Exception: the function's own.
    """
    global _running
    if _running is None:
        return function(*arguments)
    try:
        _running.send((function, arguments))
        result, error = _running.recv()
    except (EOFError, ConnectionError):
        _running = None
        raise ChildProcessError(f"the process that runs the stages has ended; see its log in {LOG_FOLDER}") from None
    if error is not None:
        raise error
    answer: Result = result
    return answer


def _serve(requests: Connection, dag: str) -> None:
    from pipelines.progress import TerminalProgress
    from sluice_airflow.reporting import shown_on

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, whose end ends this process
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _, remarks = divert_output(LOG_FOLDER / f"{dag}-stages.log")
    _warm_up(dag)
    with shown_on(TerminalProgress(remarks)):
        while True:
            try:
                function, arguments = requests.recv()
            except EOFError:
                return
            try:
                requests.send((function(*arguments), None))
            except Exception as error:
                traceback.print_exc()
                requests.send((None, portable(error)))


def portable(error: Exception) -> Exception:
    """The error, or its message in the nearest base class, if its own class needs more than a message."""
    kind = next(kind for kind in type(error).__mro__ if not isfunction(getattr(kind, "__init__", None)))
    return error if kind is type(error) else kind(str(error))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(0)


def _warm_up(dag: str) -> None:
    """Start Spark, and import the modules of the stages while its JVM starts."""
    if dag in ON_SPARK:
        from pipelines.stages.features import start_spark

        start_spark()
    if dag in IMPORTED:
        from pipelines.registry.tracking import configure_mlflow

        configure_mlflow()
    for module in IMPORTED.get(dag, ()):
        import_module(module)
