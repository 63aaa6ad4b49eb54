"""Versions of plans, stored permanently: plans/<job>/v000001.json, v000002.json, ...

No lock is taken. A writer takes the number after the highest version and creates its file exclusively; if another writer
was faster, it makes its plan again, so that the difference refers to the version that really precedes it.
"""

import logging
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import Field

from models.errors import InvalidInput, SluiceError
from models.plan.content import Plan, PlanContent
from models.plan.differences import difference, same_deployment
from models.schema import SCHEMA_VERSION, Format
from pipelines.inputs.parsing.files import validate_as
from pipelines.store.digests import digest, digest_bytes
from pipelines.store.pins import PlanPin, check_unpinned, keep_pin, release_pin
from pipelines.store.workspace import Damaged, Missing, Workspace, to_json

FOLDER = "plans"
_FILE = re.compile(r"v(\d{6,})\.json")
_logger = logging.getLogger(__name__)


class StoredPlan(Format):
    """The file of one version."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    digest: str = Field(description="SHA-256, in hex, of the canonical JSON of `plan`.")
    plan: Plan = Field(description="The plan itself.")


class PlanStore:
    """The plans of all jobs in a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def jobs(self) -> list[str]:
        """Jobs that have a plan, by name."""
        return sorted({key.split("/")[1] for key in self._workspace.list(FOLDER) if _version_of(key) is not None})

    def versions(self, job: str) -> list[int]:
        """Versions of a job's plan, ascending, damaged ones included."""
        found = (_version_of(key) for key in self._workspace.list(f"{FOLDER}/{job}"))
        return sorted(version for version in found if version is not None)

    def uri(self, job: str, version: int) -> str:
        """URI of the version."""
        return self._workspace.uri(_key(job, version))

    def get(self, job: str, version: int) -> Plan:
        """One version.

        Raises:
            InvalidInput: the version does not exist; the message lists those that do.
            Damaged: its file is truncated, was changed, or belongs elsewhere.
        """
        return self.get_stored(job, version).plan

    def sha256(self, job: str, version: int) -> str:
        """SHA-256, in hex, of the file of a version. Raises Missing."""
        return digest_bytes(self._workspace.read_bytes(_key(job, version)))

    def get_stored(self, job: str, version: int) -> StoredPlan:
        """One version with its digest; raises as `get` does."""
        try:
            return self._read(job, version)
        except Missing:
            raise InvalidInput(self._what_exists(job, version)) from None

    def latest(self, job: str) -> Plan | None:
        """The newest version whose file is intact, None without a plan; damaged ones are logged.

        Raises:
            Damaged: all versions are damaged.
        """
        return self._newest_intact(job, self.versions(job))

    def current(self, job: str) -> Plan:
        """As `latest`, but a job without a plan is an InvalidInput."""
        plan = self.latest(job)
        if plan is None:
            raise InvalidInput(self._what_exists(job, None))
        return plan

    def append(self, job: str, make: Callable[[int, Plan | None], Plan]) -> Plan:
        """Add a version, and return it as stored.

        Args:
            make: given the new version's number and the newest intact plan, returns the plan to store. It is called
                again if another writer takes that number first. To add nothing it returns the plan it was given.

        Raises:
            ValueError: `make` returns a plan of another job or version.
        """
        while True:
            versions = self.versions(job)  # listed once: the plan before must be the one before exactly this version
            version = max(versions, default=0) + 1
            before = self._newest_intact(job, versions)
            plan = make(version, before)
            if before is not None and plan is before:
                return before
            if (plan.job, plan.version) != (job, version):
                raise ValueError(f"asked for {job}@{version}, but got {plan.job}@{plan.version}")
            try:
                self._workspace.create_bytes(_key(job, version), _file(plan))
            except FileExistsError:
                if version not in self.versions(job):
                    raise SluiceError(f"{self.uri(job, version)} exists, but is not a file; remove it") from None
                continue
            return plan

    def publish(self, content: PlanContent, created_at: str) -> Plan:
        """Make `content` the newest version of its job's plan.

        Publishing the newest version again changes nothing, so a killed run may repeat it. Nor does a replan for the rate
        of the newest version that deploys the same, as when two replans are made at once.

        Args:
            created_at: ISO 8601, UTC.

        Raises:
            PinnedJob: the job is pinned, and the content differs from the pinned version.
        """

        def make(version: int, before: Plan | None) -> Plan:
            if before is not None and _says_nothing_new(content, before):
                return before
            check_unpinned(self._workspace, content.job)
            return Plan(
                **_content(content),
                version=version,
                created_at=created_at,
                difference=None if before is None else difference(before, content),
            )

        return self.append(content.job, make)

    def rollback(
        self, job: str, version: int, created_at: str, by: str, reason: str | None = None, current: int | None = None
    ) -> Plan:
        """A new version that deploys what an old one did; the job stays pinned to it until `release_pin`.

        Args:
            created_at: ISO 8601, UTC.
            by: who rolls back.
            reason: why, in words; a default text if absent.
            current: the version that must be the newest; any if absent.

        Raises:
            InvalidInput: the version does not exist, or is the newest; or the newest is not `current`.
            Damaged: its file is damaged.
        """
        old = self.get(job, version)
        replaced: list[PlanPin | None] = []

        def make(new: int, before: Plan | None) -> Plan:
            if before is None or before.version == version:
                raise InvalidInput(f"version {version} of the plan of {job!r} is the current one; name an older one")
            if current is not None and before.version != current:
                raise InvalidInput(
                    f"version {before.version} of the plan of {job!r} was published after version {current}; nothing is "
                    "rolled back; look at the difference again"
                )
            note = f"rolled back from version {before.version} to version {version} of {old.created_at}"
            why = note if reason is None else f"{note}: {reason}"
            # Before the version, so that no replan can follow it; a rollback that is killed here leaves the job pinned.
            pin = PlanPin(job=job, version=new, by=by, reason=why, pinned_at=created_at)
            replaced.append(keep_pin(self._workspace, pin))
            lineage = old.lineage.model_copy(update={"trigger": "rollback"})
            changes = {
                "version": new,
                "created_at": created_at,
                "reasons": (why, *old.reasons),
                "lineage": lineage,
                "difference": difference(before, old),
            }
            return old.model_copy(update=changes)

        try:
            return self.append(job, make)
        except InvalidInput:  # after another writer took the number that the pin names
            if replaced:
                release_pin(self._workspace, job)
                if (before := replaced[0]) is not None:
                    keep_pin(self._workspace, before)
            raise

    def _newest_intact(self, job: str, versions: Sequence[int]) -> Plan | None:
        faults = []
        for version in reversed(versions):
            try:
                plan = self._read(job, version).plan
            except Damaged as error:
                faults.append(error)
                continue
            for fault in faults:
                _logger.warning("%s; version %d of the plan of %s is used instead", fault, version, job)
            return plan
        if faults:
            raise faults[0]
        return None

    def _read(self, job: str, version: int) -> StoredPlan:
        where = self.uri(job, version)
        document = self._workspace.read_json(_key(job, version))
        try:
            stored = validate_as(document, StoredPlan, origin=where)
        except InvalidInput as error:
            raise Damaged(str(error)) from None
        # The digest is of the stored content: the format may have gained fields since it was written.
        try:
            found = digest(document["plan"])
        except UnicodeEncodeError as error:
            raise Damaged(f"{where} holds text that cannot be written: {error!s:.100}") from None
        if found != stored.digest:
            raise Damaged(f"{where} was changed after it was stored: its digest does not match its content")
        if (stored.plan.job, stored.plan.version) != (job, version):
            raise Damaged(f"{where} holds {stored.plan.job}@{stored.plan.version}, which does not belong there")
        return stored

    def _what_exists(self, job: str, version: int | None) -> str:
        jobs = self.jobs()
        if job not in jobs:
            known = f"jobs with plans: {', '.join(jobs)}" if jobs else "no job has one yet; run `sluice plan` first"
            return f"there is no plan of the job {job!r} in {self._workspace.url}; {known}"
        versions = ", ".join(map(str, self.versions(job)))
        return f"the plan of {job!r} has no version {version}; its versions: {versions}"


def _key(job: str, version: int) -> str:
    return f"{FOLDER}/{job}/v{version:06d}.json"


def _version_of(key: str) -> int | None:
    """The version of a key, None if it is not the key of a plan."""
    parts = key.split("/")
    match = _FILE.fullmatch(parts[-1])
    return int(match[1]) if match and len(parts) == 3 else None


def _file(plan: Plan) -> bytes:
    return to_json(StoredPlan(digest=digest(plan), plan=plan))


def _says_nothing_new(content: PlanContent, newest: Plan) -> bool:
    if content.lineage.trigger == "replan" and content.target_rate == newest.target_rate:
        return same_deployment(content, newest)
    return digest(_content(newest)) == digest(_content(content))


def _content(plan: PlanContent) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in PlanContent.model_fields}


def report_key(job: str, version: int) -> str:
    """Workspace key of the report of a plan."""
    return f"reports/{job}/v{version:06d}.html"
