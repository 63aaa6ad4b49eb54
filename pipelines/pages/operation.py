"""How a job does: the source rate that was seen last, and whether production is what was measured."""

from collections.abc import Iterator
from datetime import datetime

from pydantic import Field

from models.errors import SluiceError
from models.plan import Plan
from models.schema import Format
from pipelines.apply.record import recorded
from pipelines.drift.detect import latest_drift
from pipelines.rates.record import last_told
from pipelines.workspace import Workspace


class ActualRate(Format):
    """A source rate that was seen."""

    rate: float = Field(description="Records/s at the sources together.")
    seen_at: datetime
    how: str = Field(description="Where it was seen, in words.")


class Drift(Format):
    """What the last look at production said."""

    drifted: bool
    reason: str
    plan_version: int = Field(description="Version whose measurements production was compared with.")
    looked_at: datetime


class Operation(Format):
    """What the workspace holds of a job's operation."""

    actual: ActualRate | None = Field(description="The source rate last seen; None where nobody saw any.")
    drift: Drift | None = Field(description="None where nobody looked.")
    faults: tuple[str, ...] = Field(description="What could not be read, and why.")


def operation(workspace: Workspace, plan: Plan) -> Operation:
    """Read what there is. A record that is damaged is told, and hides no other."""
    seen: list[ActualRate | Drift] = []
    faults = []
    for look in (_applied, _told, _sampled):
        try:
            seen += look(workspace, plan)
        except SluiceError as error:
            faults.append(str(error))
    rates = [one for one in seen if isinstance(one, ActualRate)]
    return Operation(
        actual=max(rates, key=lambda one: one.seen_at, default=None),
        drift=next((one for one in seen if isinstance(one, Drift)), None),
        faults=tuple(faults),
    )


def _applied(workspace: Workspace, plan: Plan) -> Iterator[ActualRate]:
    for applied in recorded(workspace, plan.job, plan.version):
        if applied.effect is not None and applied.effect.rate is not None:
            yield ActualRate(
                rate=applied.effect.rate,
                seen_at=datetime.fromisoformat(applied.started_at),
                how=f"on Flink, when version {plan.version} was applied",
            )


def _told(workspace: Workspace, plan: Plan) -> Iterator[ActualRate]:
    told = last_told(workspace, plan.job)
    if told is not None:
        yield ActualRate(
            rate=told.change.new_rate,
            seen_at=told.told_at,
            how=f"it had left the band of version {told.plan_version}; read from {told.origin}",
        )


def _sampled(workspace: Workspace, plan: Plan) -> Iterator[ActualRate | Drift]:
    report = latest_drift(workspace, plan.job)
    if report is not None:
        looked_at = datetime.fromisoformat(report.created_at)
        yield Drift(drifted=report.drifted, reason=report.reason, plan_version=report.plan_version, looked_at=looked_at)
        yield ActualRate(
            rate=report.source_rate,
            seen_at=looked_at,
            how="in production's samples, when they were looked at for drift",
        )
