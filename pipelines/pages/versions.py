"""The versions of a job's plan in one line each, including damaged ones."""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pydantic import Field

from models.errors import InvalidInput
from models.plan.content import Plan
from models.plan.parts import Interval
from models.resources.price import UsdPerHourInAll
from models.schema import Format
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Damaged, Workspace

_JOB: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,119}")
_MOST_KEPT: Final = 8192
"""Outlines of versions; each takes about a kilobyte."""
_MOST_SHOWN: Final = 80
"""Most characters of a name in an error."""


class Outline(Format):
    """A version of a plan, in short."""

    version: int
    created_at: str = Field(description="ISO 8601, UTC.")
    trigger: str = Field(description="'plan', 'replan' or 'rollback'.")
    target_rate: float = Field(description="Records/s at the sources together.")
    task_slots: int = Field(description="Tasks of all operators but the sources.")
    total_slots: int = Field(description="Tasks of all operators, sources included.")
    memory_mb: float = Field(description="Memory of one TaskManager, MiB.")
    total_cores: float | None = Field(description="CPU cores of all TaskManagers; None where unknown.")
    price_per_hour: UsdPerHourInAll | None = Field(description="Of all TaskManagers, USD; None where unknown.")
    predicted_mst: Interval = Field(description="Records/s.")

    @classmethod
    def of(cls, plan: Plan) -> "Outline":
        given = {name: getattr(plan, name) for name in cls.model_fields if hasattr(plan, name)}
        found = plan.resources
        return cls(
            **given,
            trigger=plan.lineage.trigger,
            total_cores=None if found is None else found.total_cores,
            price_per_hour=None if found is None else found.price_per_hour,
        )


@dataclass(frozen=True)
class _File:
    """The file of a version, as it is now."""

    uri: str
    sha256: str
    store: PlanStore = field(compare=False)
    job: str = field(compare=False)
    version: int = field(compare=False)


def outline_of(store: PlanStore, job: str, version: int) -> Outline:
    """A version in short; kept while its file has the same bytes, since checking a plan takes longer than reading it.

    Raises:
        Damaged: its file is damaged.
    """
    return _outline(_File(store.uri(job, version), store.sha256(job, version), store, job, version))


@lru_cache(maxsize=_MOST_KEPT)
def _outline(file: _File) -> Outline:
    return Outline.of(file.store.get(file.job, file.version))


class VersionRow(Format):
    """One version: its summary, or the fault of its file."""

    version: int
    plan: Outline | None = Field(description="None if the file is damaged.")
    damaged: str | None = Field(description="The fault of the file; None if it is intact.")


class History(Format):
    """All versions of a job's plan."""

    job: str
    versions: tuple[VersionRow, ...] = Field(description="The newest first.")

    @property
    def intact(self) -> tuple[int, ...]:
        """Versions that can be shown and compared, the newest first."""
        return tuple(row.version for row in self.versions if row.plan is not None)


def history(workspace: Workspace, job: str) -> History:
    """Every version of a job's plan, read and verified.

    Raises:
        InvalidInput: no job with a plan has that name.
    """
    store = PlanStore(workspace)
    return History(job=job, versions=tuple(_row(store, job, v) for v in reversed(versions_of(store, job))))


def versions_of(store: PlanStore, job: str) -> list[int]:
    """Versions of a job's plan, ascending and at least one. Raises InvalidInput without one."""
    versions = store.versions(job) if _JOB.fullmatch(job) else []
    if not versions:
        raise InvalidInput(f"There is no plan of a job named {job[:_MOST_SHOWN]!r}.")
    return versions


def plan_of(store: PlanStore, job: str, version: int) -> Plan:
    """One version.

    Raises:
        InvalidInput: no job with a plan has that name, or it has no such version.
        Damaged: its file is damaged.
    """
    versions = versions_of(store, job)
    if version not in versions:
        raise InvalidInput(f"The plan of {job!r} has no version {version}; the newest is {versions[-1]}.")
    return store.get(job, version)


def _row(store: PlanStore, job: str, version: int) -> VersionRow:
    try:
        return VersionRow(version=version, plan=outline_of(store, job, version), damaged=None)
    except Damaged as error:
        return VersionRow(version=version, plan=None, damaged=str(error))
