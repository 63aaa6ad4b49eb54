"""The embedded Airflow of `make plan`: SQLite, no server, and the whole DAG in this process.

One process pays once for what stages share: imports, the Spark session, the JVM. Whatever tools print goes to a log
file; the terminal shows the progress of the stages and, at the end, the plan.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from airflow.models.dagrun import DagRun
from airflow.sdk import DAG, DagRunState, Param
from airflow.sdk.exceptions import ParamValidationError
from rich.console import Console

from pipelines.progress import TerminalProgress
from sluice_airflow.assets import PLAN, POLICIES
from sluice_airflow.places import FILES_VARIABLE
from sluice_airflow.reporting import shown_on

LOG_FOLDER = Path(".sluice/logs")
EXIT_FAILED, EXIT_USAGE, EXIT_STOPPED = 1, 2, 130


def main(dag: DAG, params: Mapping[str, Param]) -> NoReturn:
    """Run the DAG with parameters `name=value` from the command line, and exit with 0 if every task succeeded."""
    try:
        conf = read_parameters(sys.argv[1:], params)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(EXIT_USAGE)
    os.environ.setdefault(FILES_VARIABLE, "/")
    log = LOG_FOLDER / f"{dag.dag_id}.log"
    output, remarks = _divert_output(log)
    signal.signal(signal.SIGINT, lambda *_: _stop(remarks))
    remarks.print(f"{dag.dag_id} in an embedded Airflow; what its tools print goes to {log}")
    try:
        published = _run(dag, conf, remarks)
    except Exception as error:
        traceback.print_exc()
        remarks.print(f"{dag.dag_id} could not be run: {error}. Details: {log}", markup=False)
        sys.exit(EXIT_FAILED)
    if published is None:
        remarks.print(f"{dag.dag_id} failed; the same command goes on from what was finished. Details: {log}")
        sys.exit(EXIT_FAILED)
    for uri in published:
        _show(uri, output)
    sys.exit(0)


def _run(dag: DAG, conf: dict[str, Any], remarks: Console) -> list[str] | None:
    """Run the DAG once, in this process; returns the URIs of the plans or policies it published, None if a task failed."""
    _migrate()
    with shown_on(TerminalProgress(remarks)):
        dag_run = dag.test(run_conf=conf)
    return _published(dag, dag_run) if dag_run.state == DagRunState.SUCCESS else None


def read_parameters(arguments: Sequence[str], params: Mapping[str, Param]) -> dict[str, Any]:
    """`name=value` arguments, values read as JSON where they are JSON and as text otherwise.

    Raises:
        ValueError: one is not of that form, names no parameter, or its value does not fit the parameter's schema.
    """
    given: dict[str, Any] = {}
    for argument in arguments:
        name, equals, text = argument.partition("=")
        if not equals or name not in params:
            raise ValueError(f"arguments must be name=value of {', '.join(params)}; but got {argument!r}")
        try:
            given[name] = json.loads(text)
        except json.JSONDecodeError:
            given[name] = text
    for name, value in given.items():
        try:
            params[name].resolve(value)
        except ParamValidationError as error:
            raise ValueError(f"parameter {name!r}: {str(error).splitlines()[0]}") from None
    return given


def _divert_output(log: Path) -> tuple[Console, Console]:
    """From now on, what this process and its children print goes to `log`.

    It is done to the file descriptors, since the JVM writes to them too, and for good, since some tools say their last
    word when the process ends. Returns consoles on the standard output and the standard error that there were.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    output, remarks = (os.fdopen(os.dup(descriptor), "w", buffering=1) for descriptor in (1, 2))
    with log.open("w") as sink:
        for descriptor in (1, 2):
            os.dup2(sink.fileno(), descriptor)
    return Console(file=output, highlight=False), Console(file=remarks, highlight=False, soft_wrap=True)


def _migrate() -> None:
    """Make Airflow's database, or bring it to this version."""
    from airflow.utils import db

    try:
        db.check_migrations(timeout=0)  # type: ignore[no-untyped-call]
    except TimeoutError:
        db.initdb()


def _published(dag: DAG, dag_run: DagRun) -> list[str]:
    """URIs returned by the tasks that publish plans or policies."""
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    with create_session() as session:
        query = XComModel.get_many(run_id=dag_run.run_id, dag_ids=dag_run.dag_id, key="return_value")
        returned: list[XComModel] = list(session.scalars(query))
    publishing = {task.task_id for task in dag.tasks if {PLAN, POLICIES} & set(task.outlets)}
    return [XComModel.deserialize_value(value) for value in returned if value.task_id in publishing]


def _stop(remarks: Console) -> NoReturn:
    # A KeyboardInterrupt inside a task would only fail that task, and Airflow would go on to retry it.
    remarks.print("\nstopped; the same command goes on from what was finished")
    os._exit(EXIT_STOPPED)


def _show(uri: str, output: Console) -> None:
    """Print what was published and where its files lie."""
    if "/policies/" in uri:
        _show_choice(uri, output)
    else:
        _show_plan(uri, output)


def _show_choice(uri: str, output: Console) -> None:
    from pipelines.evaluation.choice import FOLDER, PolicyChoice
    from pipelines.workspace import Workspace

    root, _, key = uri.rpartition(f"/{FOLDER}/")
    workspace = Workspace(root)
    choice = workspace.read(f"{FOLDER}/{key}", PolicyChoice)
    report = f"{choice.results.rpartition('/')[0]}/report.html"
    output.print(f"{choice.job}: {choice.reason}", soft_wrap=True, markup=False)
    output.print(f"report: {workspace.uri(report)}", soft_wrap=True)
    output.print(f"choice: {uri}", soft_wrap=True)


def _show_plan(plan_uri: str, output: Console) -> None:
    from pipelines.cli.plan_tables import plan_view
    from pipelines.plan_store import PlanStore
    from pipelines.publish import report_key
    from pipelines.workspace import Workspace

    root, _, key = plan_uri.rpartition("/plans/")
    workspace = Workspace(root)
    job, file = key.split("/")
    plan = PlanStore(workspace).get(job, int(file.removeprefix("v").removesuffix(".json")))
    output.print(plan_view(plan))
    output.print(f"report: {workspace.uri(report_key(plan.job, plan.version))}", soft_wrap=True)
    output.print(f"plan:   {plan_uri}", soft_wrap=True)
