"""The state of a job: its last known source rate, and whether production differs from the measurements."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final, Literal

from pydantic import Field

from models.errors import SluiceError
from models.schema import Format
from pipelines.apply.record import recorded
from pipelines.control.files import AutopilotFiles
from pipelines.drift.record import DriftReport
from pipelines.drift.reports import drift_key, latest_drift, versions
from pipelines.rates.record import RateChangeEvent, event_keys, last_event
from pipelines.rates.status import read_status
from pipelines.store.workspace import Damaged, Workspace

MOST_RATES: Final = 12
"""Rates of each origin that are shown over time."""
_MOST_KEPT: Final = 65_536
"""Rates that are kept between two pages; each takes a few hundred bytes."""


class ActualRate(Format):
    """An observed source rate."""

    rate: float = Field(description="Records/s at the sources together.")
    seen_at: datetime
    how: str = Field(description="Where it was observed, in words.")


class Unfollowed(Format):
    """Why the source rate is not followed now."""

    unreadable: bool = Field(
        description="Whether it cannot be read; otherwise it is read, but is only what an overloaded job achieves."
    )
    reason: str
    since: datetime


class Drift(Format):
    """The result of the last check of production."""

    drifted: bool
    reason: str
    plan_version: int = Field(description="Version whose measurements production was compared with.")
    looked_at: datetime


class RatePoint(Format):
    """A source rate at a time."""

    rate: float = Field(description="Records/s at the sources together.")
    seen_at: datetime


class Lag(Format):
    """What waits before the sources, as the job's autopilot saw it last."""

    seconds: float | None = Field(description="Time to catch up if nothing new arrived; None if unknown.")
    records: float | None = Field(description="Records that wait; None if unknown.")
    seen_at: datetime


class Operation(Format):
    """The state of a job's operation in the workspace."""

    actual: ActualRate | None = Field(description="The last known source rate; None if unknown.")
    rates: tuple[RatePoint, ...] = Field(description="The newest rates that were observed, the first one first.")
    lag: Lag | None = Field(description="None if no autopilot has seen the job.")
    unfollowed: Unfollowed | None = Field(
        description="None if the source rate is followed or need not be, and while the job is pinned."
    )
    drift: Drift | None = Field(description="None if production was not checked yet.")
    faults: tuple[str, ...] = Field(description="What could not be read, and why.")


def operation(workspace: Workspace, job: str, version: int) -> Operation:
    """Read the records of the job. Damaged ones are reported; the others are still shown."""
    seen: list[ActualRate | Drift | Lag] = []
    faults = []
    for look in (_applied, _told, _sampled, _piloted):
        try:
            seen += look(workspace, job, version)
        except SluiceError as error:
            faults.append(str(error))
    rates = sorted((one for one in seen if isinstance(one, ActualRate)), key=lambda one: one.seen_at)
    return Operation(
        actual=rates[-1] if rates else None,
        rates=_over_time(workspace, job, rates),
        lag=next((one for one in seen if isinstance(one, Lag)), None),
        unfollowed=_unfollowed(workspace, job),
        drift=next((one for one in seen if isinstance(one, Drift)), None),
        faults=tuple(faults),
    )


def _unfollowed(workspace: Workspace, job: str) -> Unfollowed | None:
    status = read_status(workspace, job)
    if status is None or status.state in ("followed", "pinned"):
        return None
    return Unfollowed(unreadable=status.state == "unreadable", reason=status.reason, since=status.since)


def _over_time(workspace: Workspace, job: str, seen: list[ActualRate]) -> tuple[RatePoint, ...]:
    """The rates that were seen, and those of earlier changes and checks; one for each time."""
    points = {one.seen_at: one.rate for one in seen}
    earlier = [
        _Record(workspace.uri(key), "change", workspace, key) for key in event_keys(workspace, job)[-MOST_RATES:]
    ]
    for version in versions(workspace, job)[-MOST_RATES:]:
        key = drift_key(job, version)
        earlier.append(_Record(workspace.uri(key), "check", workspace, key))
    for record in earlier:
        with suppress(Damaged):  # the newest ones are reported above
            point = _point(record)
            points[point.seen_at] = point.rate
    return tuple(RatePoint(rate=rate, seen_at=at) for at, rate in sorted(points.items()))


@dataclass(frozen=True)
class _Record:
    """A stored change of the rate, or check for drift; neither is ever changed."""

    uri: str
    kind: Literal["change", "check"]
    workspace: Workspace = field(compare=False)
    key: str = field(compare=False)


@lru_cache(maxsize=_MOST_KEPT)
def _point(record: _Record) -> RatePoint:
    """The rate in a record. It is kept, since a page of hundreds of jobs shows thousands."""
    if record.kind == "change":
        event = record.workspace.read(record.key, RateChangeEvent)
        return RatePoint(rate=event.change.new_rate, seen_at=event.reported_at)
    report = record.workspace.read(record.key, DriftReport)
    return RatePoint(rate=report.source_rate, seen_at=datetime.fromisoformat(report.created_at))


def _applied(workspace: Workspace, job: str, version: int) -> Iterator[ActualRate]:
    for applied in recorded(workspace, job, version):
        if applied.effect is not None and applied.effect.rate is not None:
            yield ActualRate(
                rate=applied.effect.rate,
                seen_at=datetime.fromisoformat(applied.started_at),
                how=f"on Flink, when version {version} was applied",
            )


def _told(workspace: Workspace, job: str, version: int) -> Iterator[ActualRate]:
    event = last_event(workspace, job)
    if event is not None:
        yield ActualRate(
            rate=event.change.new_rate,
            seen_at=event.reported_at,
            how=f"when it left the band of version {event.plan_version}; read from {event.origin}",
        )


def _sampled(workspace: Workspace, job: str, version: int) -> Iterator[ActualRate | Drift]:
    report = latest_drift(workspace, job)
    if report is not None:
        looked_at = datetime.fromisoformat(report.created_at)
        yield Drift(drifted=report.drifted, reason=report.reason, plan_version=report.plan_version, looked_at=looked_at)
        yield ActualRate(
            rate=report.source_rate,
            seen_at=looked_at,
            how="in production samples, when they were checked for drift",
        )


def _piloted(workspace: Workspace, job: str, version: int) -> Iterator[ActualRate | Lag]:
    state = AutopilotFiles(workspace, job).state()
    if state is None or state.newest is None:
        return
    seen, at = state.newest.seen, state.newest.decided_at
    if seen.arriving_rate is not None:
        yield ActualRate(rate=seen.arriving_rate, seen_at=at, how="by its autopilot")
    yield Lag(seconds=seen.lag_s, records=seen.lag_records, seen_at=at)
