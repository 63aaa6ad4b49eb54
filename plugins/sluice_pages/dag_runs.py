"""Runs of DAGs that are started from the pages, and what became of them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.datamodels.dag_run import TriggerDAGRunPostBody
from airflow.api_fastapi.core_api.routes.public.dag_run import trigger_dag_run
from airflow.models.dag import DagModel
from airflow.models.dagbag import DBDagBag
from airflow.models.dagrun import DagRun
from fastapi import HTTPException, Request
from sqlalchemy import select
from sqlalchemy.orm import Session

from sluice_pages.access import may_see
from sluice_pages.airflow_records import run_path

REPLANNING: Final = "replan"
APPLYING: Final = "apply_plan"
_MOST_RUNS: Final = 5


@dataclass(frozen=True)
class StartedRun:
    """A run of a DAG for a job, started by hand."""

    dag_id: str
    state: str
    by: str | None
    rate: float | None
    """Records/s to replan for; None if the run applies a plan."""
    version: int | None
    """Version to apply; None if it is the newest, or the run replans."""
    queued_at: datetime | None
    path: str
    """Of its page in Airflow."""


def start_run(session: Session, user: BaseUser, request: Request, dag_id: str, conf: dict[str, Any]) -> None:
    """Start a run as Airflow's own API does, in the name of the user.

    Raises:
        HTTPException: the DAG is unknown, paused, or refuses the parameters; nothing is started.
    """
    dag = session.get(DagModel, dag_id)
    if dag is not None and dag.is_paused:
        raise HTTPException(409, f"Nothing was started, since the DAG {dag_id!r} is paused; unpause it in Airflow.")
    body = TriggerDAGRunPostBody(conf=conf, logical_date=None)
    trigger_dag_run(dag_id, body, DBDagBag(), user, session, request)


def started_runs(session: Session, user: BaseUser, job: str) -> tuple[StartedRun, ...]:
    """The newest runs that replan the job or apply its plans with the job in their parameters, as far as the user may see."""
    allowed = [dag for dag in (REPLANNING, APPLYING) if may_see(user, dag, DagAccessEntity.RUN)]
    asked = (
        select(DagRun)
        .where(DagRun.dag_id.in_(allowed), DagRun.conf["job"].as_string() == job)
        .order_by(DagRun.run_after.desc())
        .limit(_MOST_RUNS)
    )
    return tuple(
        StartedRun(
            dag_id=run.dag_id,
            state=str(run.state),
            by=run.triggering_user_name,
            rate=_number(run.conf, "rate"),
            version=_number(run.conf, "version"),
            queued_at=run.queued_at,
            path=run_path(run.dag_id, run.run_id),
        )
        for run in session.scalars(asked)
    )


def _number(conf: object, name: str) -> Any:
    """A number in the parameters of a run, which anyone who may start runs can write; None if it is none."""
    given = conf.get(name) if isinstance(conf, dict) else None
    return given if isinstance(given, int | float) and not isinstance(given, bool) else None
