"""Records of Airflow: the run that made a plan, pending approvals, and the health of its components."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from urllib.parse import quote

from airflow.api.common.airflow_health import HEALTHY, get_airflow_health
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.models.asset import AssetEvent, AssetModel
from airflow.models.dag import DagTag
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import TaskInstanceState
from sqlalchemy import select
from sqlalchemy.orm import Session

from sluice_pages.access import may_see

PLAN_ASSET: Final = "sluice-plan"
TAG: Final = "sluice"
"""Tag of every DAG of Sluice."""
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""A name in a sentence; the job in `q5@3`."""
_WAITING: Final = (TaskInstanceState.DEFERRED, TaskInstanceState.AWAITING_INPUT)


@dataclass(frozen=True)
class MadeBy:
    """The DAG run that made a plan, and the path of its page in Airflow."""

    dag_id: str
    run_id: str
    path: str


@dataclass(frozen=True)
class Approval:
    """A question that a task waits for a person to answer, and the path of its page in Airflow."""

    subject: str
    job: str | None
    dag_id: str
    asked_at: datetime
    path: str


@dataclass(frozen=True)
class ComponentHealth:
    """A component that runs need to start and continue."""

    name: str
    healthy: bool
    last_heartbeat: str | None
    """ISO 8601; None if it has never run."""


def components() -> tuple[ComponentHealth, ...]:
    """Health of the components, by Airflow's own limits on their heartbeats."""
    found = get_airflow_health()
    return tuple(
        ComponentHealth(key.replace("_", " "), found[key]["status"] == HEALTHY, found[key][f"latest_{key}_heartbeat"])
        for key in ("scheduler", "dag_processor", "triggerer")
    )


def made_by(session: Session, user: BaseUser, plan_uri: str) -> MadeBy | None:
    """The DAG run whose asset event carries the plan's URI; None if there is none that the user may see."""
    events = (
        select(AssetEvent.source_dag_id, AssetEvent.source_run_id)
        .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        .where(AssetModel.name == PLAN_ASSET, AssetEvent.extra["uri"].as_string() == plan_uri)
        .order_by(AssetEvent.timestamp)
        .limit(1)
    )
    found = session.execute(events).first()
    if found is None or found.source_dag_id is None or found.source_run_id is None:
        return None
    if not may_see(user, found.source_dag_id, DagAccessEntity.RUN):
        return None
    return MadeBy(found.source_dag_id, found.source_run_id, run_path(found.source_dag_id, found.source_run_id))


def pending_approvals(session: Session, user: BaseUser, jobs: Collection[str]) -> tuple[Approval, ...]:
    """Open questions of Sluice's DAGs that the user may see, the oldest first.

    A question is about the job in the parameters of its DAG run, else about the one of `jobs` that its subject names.
    """
    asked = (
        select(HITLDetail, TaskInstance, DagRun.conf)
        .join(TaskInstance, TaskInstance.id == HITLDetail.ti_id)
        .join(DagRun, (DagRun.dag_id == TaskInstance.dag_id) & (DagRun.run_id == TaskInstance.run_id))
        .join(DagTag, (DagTag.dag_id == TaskInstance.dag_id) & (DagTag.name == TAG))
        .where(HITLDetail.responded_at.is_(None), TaskInstance.state.in_(_WAITING))
        .order_by(HITLDetail.created_at)
    )
    rows = session.execute(asked).all()
    allowed = {dag: may_see(user, dag, DagAccessEntity.HITL_DETAIL) for dag in {task.dag_id for _, task, _ in rows}}
    return tuple(
        Approval(
            subject=detail.subject,
            job=job_asked_about(conf, detail.subject, jobs),
            dag_id=task.dag_id,
            asked_at=detail.created_at,
            path=_question_path(task),
        )
        for detail, task, conf in rows
        if allowed[task.dag_id]
    )


def job_asked_about(conf: object, subject: str, jobs: Collection[str]) -> str | None:
    """The job of a question; None if neither the parameters of the DAG run nor the subject name one."""
    given = conf.get("job") if isinstance(conf, dict) else None
    named = {given} if isinstance(given, str) else set(_NAME.findall(subject)) & set(jobs)
    return named.pop() if len(named) == 1 else None


def run_path(dag_id: str, run_id: str) -> str:
    """Path of a run's page in Airflow."""
    return f"/dags/{quote(dag_id, safe='')}/runs/{quote(run_id, safe='')}"


def _question_path(task: TaskInstance) -> str:
    mapped = "" if task.map_index < 0 else f"/mapped/{task.map_index}"
    return f"{run_path(task.dag_id, task.run_id)}/tasks/{quote(task.task_id, safe='')}{mapped}/required_actions"
