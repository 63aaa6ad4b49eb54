"""Requests for new measurements: once per plan's measurements, and not before a cool-down has passed.

Each request in a row after which nothing else has drifted doubles the cool-down: measuring again did not help.
"""

from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from operator import attrgetter
from typing import Final, Literal

from pydantic import Field

from models.errors import SluiceError
from models.schema import SCHEMA_VERSION, Format, Name, Positive, PositiveInt
from pipelines.drift.detect import drift_settings, origin_of
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import FOLDER, drift_key
from pipelines.inputs.plan_request import PlanRequest
from pipelines.progress import Quiet
from pipelines.run import REQUEST_FILE
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace, to_json

REQUESTS: Final = "requests"
_MOST_DOUBLINGS: Final = 6
"""With a cool-down of a day, two months."""


class ReprofileRequest(Format):
    """A request to measure and plan a job again, and why."""

    schema_version: Literal[1] = SCHEMA_VERSION
    job: Name
    request: str = Field(description="URI of the request to repeat with new measurements.")
    rate: Positive = Field(description="The current target rate, records/s.")
    reason: str
    drift: str = Field(description="URI of the report.")
    report: PositiveInt = Field(description="Version of the report.")
    created_at: str = Field(description="ISO 8601, UTC.")
    drifted: tuple[str, ...] = Field(
        (), description="What has drifted: each an operator, a quantity and the direction."
    )

    @property
    def at(self) -> datetime:
        return datetime.fromisoformat(self.created_at)


def can_be_measured(workspace: Workspace, job: str) -> bool:
    """Whether the request behind a job's plan can be repeated: not where the plan was made from the running job.

    True also where that cannot be read: whoever repeats the request says what is wrong with it.
    """
    try:
        run = PlanStore(workspace).current(job).lineage.run
        return workspace.read(f"runs/{job}/{run}/{REQUEST_FILE}", PlanRequest).testbed != "running"
    except SluiceError:
        return True


def request_reprofile(workspace: Workspace, report: DriftReport, now: datetime) -> ReprofileRequest | None:
    """The request that follows from a report; None without drift, or if new measurements were requested before.

    The same report gives the same request again, so that a killed process may repeat it.

    Args:
        now: with a time zone.
    """
    if not report.drifted:
        return None
    key = _key(report.job, report.run)
    if workspace.exists(key):
        return _same(workspace, key, report)
    plan = PlanStore(workspace).current(report.job)
    run = origin_of(workspace, plan, Quiet())
    drifted = _drifted(report)
    if _cooling(workspace, report.job, now, drift_settings(run.job).cool_down_s, drifted):
        return None
    asked = ReprofileRequest(
        job=report.job,
        request=workspace.uri(f"runs/{report.job}/{plan.lineage.run}/request.json"),
        rate=plan.target_rate,
        reason=report.reason,
        drift=workspace.uri(drift_key(report.job, report.version)),
        report=report.version,
        created_at=now.isoformat(timespec="seconds"),
        drifted=drifted,
    )
    try:
        workspace.create_bytes(key, to_json(asked))
    except FileExistsError:  # another process was faster
        return _same(workspace, key, report)
    return asked


def request_kept(workspace: Workspace, job: str) -> ReprofileRequest | None:
    """The request for new measurements in place of those of the job's current plan; None if there is none.

    Raises:
        InvalidInput: the job has no plan.
    """
    key = _key(job, PlanStore(workspace).current(job).lineage.run)
    return workspace.read(key, ReprofileRequest) if workspace.exists(key) else None


def _key(job: str, run: str) -> str:
    return f"{FOLDER}/{job}/{REQUESTS}/{run}.json"


def _same(workspace: Workspace, key: str, report: DriftReport) -> ReprofileRequest | None:
    before = workspace.read(key, ReprofileRequest)
    return before if before.report == report.version else None


def _drifted(report: DriftReport) -> tuple[str, ...]:
    found = (c for c in report.comparisons if c.drifted)
    return tuple(
        f"{c.operator or report.job} {c.quantity} {'above' if c.production > c.high else 'below'}" for c in found
    )


def _cooling(workspace: Workspace, job: str, now: datetime, cool_down_s: float, drifted: Sequence[str]) -> bool:
    """Whether the last request is that recent; one in the future, after a clock was set back, is not."""
    made = [workspace.read(key, ReprofileRequest) for key in workspace.list(f"{FOLDER}/{job}/{REQUESTS}")]
    past = sorted((one for one in made if one.at <= now), key=attrgetter("at"), reverse=True)
    if not past:
        return False
    in_vain = sum(1 for _ in takewhile(lambda one: set(drifted) <= set(one.drifted), past))
    return (now - past[0].at).total_seconds() < cool_down_s * 2.0 ** min(in_vain, _MOST_DOUBLINGS)
