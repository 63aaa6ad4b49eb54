"""Running a DAG once in this process, with `dag.test()`, and showing what it published."""

import json
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from airflow.models.dagrun import DagRun
from airflow.sdk import DAG, DagRunState, Param
from airflow.sdk.exceptions import ParamValidationError
from rich.console import Console

from pipelines.progress import TerminalProgress
from sluice_airflow.assets import PLAN, POLICIES
from sluice_airflow.embedded.output import LOG_FOLDER, divert_output
from sluice_airflow.places import FILES_VARIABLE
from sluice_airflow.reporting import shown_on

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
    output, remarks = divert_output(log)
    signal.signal(signal.SIGINT, lambda *_: _stop(remarks))
    remarks.print(f"{dag.dag_id} in an embedded Airflow; its log: {log}")
    try:
        published = _run(dag, conf, remarks)
    except Exception as error:
        traceback.print_exc()
        remarks.print(f"{dag.dag_id} failed to run: {error}. Details: {log}", markup=False)
        sys.exit(EXIT_FAILED)
    if published is None:
        remarks.print(f"{dag.dag_id} failed; the same command resumes after the last finished stage. Details: {log}")
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


def _migrate() -> None:
    """Create Airflow's database or migrate it to this version."""
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
    # A KeyboardInterrupt inside a task would only fail that task, and Airflow would retry it.
    remarks.print("\nstopped; the same command resumes after the last finished stage")
    os._exit(EXIT_STOPPED)


def _show(uri: str, output: Console) -> None:
    """Print a published plan or policy, and the URIs of its files."""
    if "/policies/" in uri:
        _show_choice(uri, output)
    else:
        _show_plan(uri, output)


def _show_choice(uri: str, output: Console) -> None:
    from pipelines.arena.choice import FOLDER, PolicyChoice
    from pipelines.store.workspace import Workspace

    root, _, key = uri.rpartition(f"/{FOLDER}/")
    workspace = Workspace(root)
    choice = workspace.read(f"{FOLDER}/{key}", PolicyChoice)
    report = f"{choice.results.rpartition('/')[0]}/report.html"
    output.print(f"{choice.job}: {choice.reason}", soft_wrap=True, markup=False)
    output.print(f"report: {workspace.uri(report)}", soft_wrap=True)
    output.print(f"choice: {uri}", soft_wrap=True)


def _show_plan(plan_uri: str, output: Console) -> None:
    from pipelines.store.plans import PlanStore, report_key
    from pipelines.store.workspace import Workspace
    from pipelines.terminal.plan_tables import plan_view

    root, _, key = plan_uri.rpartition("/plans/")
    workspace = Workspace(root)
    job, file = key.split("/")
    plan = PlanStore(workspace).get(job, int(file.removeprefix("v").removesuffix(".json")))
    output.print(plan_view(plan))
    output.print(f"report: {workspace.uri(report_key(plan.job, plan.version))}", soft_wrap=True)
    output.print(f"plan:   {plan_uri}", soft_wrap=True)
