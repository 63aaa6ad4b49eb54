"""Data of the plan page tests in Airflow and in the workspace, and their logins."""

import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import httpx
import jwt
import pytest
import yaml

from models.plan.content import Plan
from models.resources.planned import Alternative, PlanResources, Price
from pipelines.calendar.scheduling import scheduled_rate
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import drift_key
from pipelines.rates.status import keep_status
from pipelines.store.digests import digest
from pipelines.store.plans import PlanStore, StoredPlan
from pipelines.store.workspace import Workspace, to_json

JOB = "nexmark-q1"
"""Planned on the simulator; version 2 by a run of the DAG `replan`."""
DAMAGED_JOB = "nexmark-q5"
"""Version 1 is intact and says something dangerous; version 2 was tampered with."""
SCRIPT = "<script>document.title = 'broken in'</script>"
PATIENCE_S = 120.0
"""For any one answer, on a machine that is busy."""
PASSWORD = secrets.token_hex(8)


@dataclass(frozen=True)
class Server:
    """A running API server."""

    url: str
    secret: str

    def client(self, token: str | None = None) -> httpx.Client:
        """A client of this server, with the token of a user."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE_S)

    def token(self, user: str) -> str:
        """A token from a login with the password."""
        with self.client() as client:
            answer = client.post("/auth/token", json={"username": user, "password": PASSWORD})
        return str(answer.raise_for_status().json()["access_token"])

    def forged(self, user: str, *, secret: str | None = None, expired: bool = False) -> str:
        """A user's token, signed with another secret or with its time gone by."""
        claims = jwt.decode(self.token(user), options={"verify_signature": False})
        if expired:
            claims |= {name: claims[name] - 10 * 86400 for name in ("exp", "iat", "nbf")}
        return jwt.encode(claims, secret or self.secret, algorithm="HS512")


def calendar_job(root: Path, folder: Path) -> Path:
    """The file of the job that is planned, with a calendar whose peak is every evening in Berlin."""
    calendar = {
        "time_zone": "Europe/Berlin",
        "base_rate": 4e5,
        "rescale_s": 240,
        "events": [
            {"name": "Evening", "cron": "0 18 * * *", "duration_s": 4 * 3600, "rate": 3e6},
            {"name": f"Launch {SCRIPT}", "start": "2099-03-01T08:00", "end": "2099-03-02T08:00", "factor": 1.5},
        ],
        "freeze": [{"begin": "02:00", "end": "03:30"}],
        "freeze_dates": [{"begin": "2098-12-24T00:00", "end": "2098-12-27T00:00"}],
    }
    document = yaml.safe_load((root / "jobs" / f"{JOB}.yaml").read_text())
    file = folder / f"{JOB}.yaml"
    file.write_text(yaml.safe_dump(document | {"sql": None, "operations": {"calendar": calendar}}))
    return file


def follow_calendar(workspace: Workspace) -> None:
    """Publish the versions some days ago, and store the week's schedule, as the follower of the calendar does."""
    store, now = PlanStore(workspace), datetime.now(UTC)
    for version, hours in ((1, 144), (2, 36)):
        at = (now - timedelta(hours=hours)).isoformat(timespec="seconds")
        plan = store.get(JOB, version).model_copy(update={"created_at": at})
        workspace.write(f"plans/{JOB}/v{version:06d}.json", StoredPlan(digest=digest(plan), plan=plan))
    assert scheduled_rate(workspace, store.current(JOB), now) is not None


def replan_by_dag(root: Path, folder: Path) -> None:
    from airflow.dag_processing.dagbag import DagBag

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_WORKSPACE", str(folder))
        dag = DagBag(str(root / "dags")).dags["replan"]
        assert dag.test(run_conf={"job": JOB, "rate": 3e6}).state == "success"


def _priced(plan: Plan) -> PlanResources:
    """TaskManagers of the kind `small`, for 0.50 USD per hour each."""
    count = len(plan.placement)
    small = {"kind": "small", "slots": 4, "cores": None, "memory_mb": 8192, "task_managers": count}
    lean = {"kind": "lean", "slots": 4, "cores": 2, "memory_mb": 64, "task_managers": None, "price_per_hour": None}
    return PlanResources(
        task_managers=count,
        kind="small",
        slots=plan.slots_per_worker,
        cores=plan.cores_per_worker,
        memory_mb=plan.memory_mb,
        total_cores=None,
        total_memory_mb=count * plan.memory_mb,
        price=Price(per_hour=count * Decimal("0.5"), low=Decimal(1), high=None),
        alternatives=(
            Alternative(**small, price_per_hour=count * Decimal("0.5")),
            Alternative(**lean, why_not="too little memory"),
        ),
    )


def store_damaged(workspace: Workspace, root: Path) -> None:
    for version in (1, 2):
        plan = Plan.model_validate_json((root / f"tests/data/plans/{DAMAGED_JOB}-v{version}.json").read_text())
        plan = plan.model_copy(update={"reasons": (*plan.reasons, SCRIPT), "resources": _priced(plan)})
        content = to_json(StoredPlan(digest=digest(plan), plan=plan))
        if version == 2:
            content = content.replace(b'"headroom": 1.1', b'"headroom": 1.2')
        workspace.create_bytes(f"plans/{DAMAGED_JOB}/v{version:06d}.json", content)
    assert PlanStore(workspace).current(DAMAGED_JOB).version == 1


def store_drift(workspace: Workspace) -> None:
    """Store the report of a drift check that found drift, and a source rate that cannot be read."""
    keep_status(workspace, JOB, "unreadable", "<no> token", datetime(2026, 3, 1, 12, tzinfo=UTC))
    report = DriftReport(
        job=JOB,
        version=1,
        created_at="2026-03-01T11:00:00+00:00",
        plan_version=2,
        run="r",
        source_rate=2_850_000.0,
        samples={},
        drifted=True,
        reason="calc: CPU time per record is 0.7 us (+20%), and 0.5 us to 0.65 us was expected",
        comparisons=(),
        busyness=(),
    )
    workspace.write(drift_key(JOB, 1), report)


def ask_for_approval() -> None:
    """Park a task of the DAG run as one that waits for a person, as Airflow stores it."""
    from airflow.models.hitl import HITLDetail
    from airflow.models.taskinstance import TaskInstance
    from airflow.utils.session import create_session
    from airflow.utils.state import TaskInstanceState
    from sqlalchemy import select

    with create_session() as session:
        tasks = select(TaskInstance).where(TaskInstance.dag_id == "replan", TaskInstance.task_id == "changes")
        task = session.scalars(tasks.order_by(TaskInstance.start_date.desc())).first()
        assert task is not None
        task.state = TaskInstanceState.DEFERRED
        session.add(
            HITLDetail(
                ti_id=task.id,
                options=["Approve", "Reject"],
                subject=f"Apply the plan? {SCRIPT}",
                created_at=datetime.now(UTC) - timedelta(minutes=5),
            )
        )
