"""A user's Flink cluster, on which only jobs are started and stopped.

Jobs and jars are on record before they are there; what a killed process left is removed by the next one that uses the cluster.
"""

import re
import secrets
import socket
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from flink_client.address import FlinkAddress
from flink_client.jobs.deployment import AvailableTaskManager
from flink_client.jobs.restart import SAVEPOINT_SETTINGS
from flink_client.jobs.running import Scheduler, other_jobs, room_for, scheduler, settings
from flink_client.metrics.readings import Readings, RestReadings
from flink_client.metrics.refreshing import refresh_s
from flink_client.rest.answers import ENDED, flinks_answers
from flink_client.rest.client import FlinkRest
from models.cluster import Cluster, Worker
from models.errors import Infeasible, InvalidInput, SluiceError
from models.plan.slots import PlacedTask
from testbeds.flink.feeding.serving import FileServer
from testbeds.flink.local.distribution import RELEASES, Report, flink_home, line_of
from testbeds.flink.local.kit import kit_jar
from testbeds.ledger import Entry, Ledger, abandoned
from testbeds.local.jdk import find_jdk

_FREED_S: Final = 10.0
_LOOK_EVERY_S: Final = 0.2
_NO_JOB: Final = "none"
_JOB: Final = "job"
_JARS: Final = "jars"
"""Kinds of what is on record; jars by the end of their ids."""


@dataclass(frozen=True)
class FoundCluster:
    """The resources and settings found on a cluster."""

    rooms: tuple[AvailableTaskManager, ...]
    """Resources of the TaskManagers with free slots."""
    refresh_s: float
    """Refresh interval of metrics in the REST interface, seconds."""
    others: tuple[str, ...]
    """Jobs running there."""
    scheduler: Scheduler
    takes_savepoints: bool
    """Whether its settings name a folder for savepoints."""

    @property
    def memory_mb(self) -> float:
        """Memory of the smallest TaskManager's process, MiB."""
        return min(room.memory_mb for room in self.rooms if room.memory_mb is not None)

    @property
    def cluster(self) -> Cluster:
        """The TaskManagers as workers; other capacities are unknown."""
        names = [re.sub(r"[^A-Za-z0-9._-]", "-", room.task_manager)[:120] for room in self.rooms]
        workers = [
            Worker(name=name, slots=room.slots, memory_mb=room.memory_mb)
            for name, room in zip(names, self.rooms, strict=True)
        ]
        return Cluster(name="flink", workers=tuple(workers))


class NamedCluster:
    """Implements `testbeds.flink.cluster.FlinkCluster` for a user's cluster; close it."""

    def __init__(self, address: FlinkAddress, report: Report = lambda what, share: None) -> None:
        """
        Raises:
            InvalidInput: its version of Flink is none of those that the kit is made for.
            SluiceError: it does not answer, or there is no Java for the kit here.
        """
        self._address, self._report = address, report
        self._rest = FlinkRest(address.rest_url)
        self._jars: dict[Path, str] = {}
        self._mark = f"-{secrets.token_hex(8)}.jar"
        """End of the ids of all jars uploaded from here."""
        self._ledger = Ledger(self._rest.url)
        self._noted: list[Entry] = []
        self._server: FileServer | None = None
        try:
            with flinks_answers(self._rest.url):
                version = self._rest.flink_version()
            if (release := RELEASES.get(line_of(version))) is None:
                raise InvalidInput(
                    f"a Flink cluster that is measured on must run version {' or '.join(RELEASES)}, but {self._rest.url} "
                    f"runs {version}; name another one, or none to have Sluice start its own"
                )
            self._remove_abandoned()
        except BaseException:
            self._rest.close()
            raise
        self._release = release

    @property
    def rest(self) -> FlinkRest:
        return self._rest

    @cached_property
    def kit(self) -> Path:
        return kit_jar(flink_home(self._report, self._release), find_jdk(), self._release)

    @cached_property
    def host(self) -> str:
        """The address at which the TaskManagers reach this machine."""
        if self._address.control_host is not None:
            return self._address.control_host
        parts = urlsplit(self._address.rest_url)
        try:
            target = (parts.hostname or "", parts.port or {"https": 443}.get(parts.scheme, 80))
            with socket.create_connection(target, timeout=10) as connection:
                return str(connection.getsockname()[0])
        except OSError as error:
            raise SluiceError(f"Flink at {self._rest.url} cannot be reached: {error}; check the address") from error

    @cached_property
    def found(self) -> FoundCluster:
        """Find out its resources and settings.

        Raises:
            InvalidInput: its settings make measuring impossible.
            SluiceError: it does not answer as Flink does.
        """
        with flinks_answers(self._rest.url):
            configured = settings(self._rest)
            rooms = tuple(room for room in room_for(self._rest, _NO_JOB) if room.slots > 0)
            others = other_jobs(self._rest, _NO_JOB)
        if not rooms:
            raise Infeasible(
                f"no TaskManager with a free slot has registered at {self._rest.url}; start some, or cancel other jobs"
            )
        if any(room.memory_mb is None for room in rooms):
            raise InvalidInput(
                f"TaskManagers at {self._rest.url} must be processes of their own, but one reports no memory"
            )
        return FoundCluster(
            rooms=rooms,
            refresh_s=refresh_s(configured, self._rest.url),
            others=tuple(others),
            scheduler=scheduler(configured),
            takes_savepoints=any(configured.get(key) for key in SAVEPOINT_SETTINGS),
        )

    def uploaded(self, jar: Path) -> str:
        if jar not in self._jars:
            if not self._jars:
                self._note({"kind": _JARS, "mark": self._mark})
            self._jars[jar] = self._rest.upload(jar, f"{jar.stem}{self._mark}")
        return self._jars[jar]

    def new_job_id(self) -> str:
        """A random one, on record."""
        id_ = secrets.token_hex(16)
        self._note({"kind": _JOB, "id": id_})
        return id_

    def data_path(self, file: Path) -> str:
        """Served over HTTP, since the TaskManagers may not have access to this machine's disk."""
        if self._server is None:
            self._server = FileServer(self.host)
        return self._server.url(file)

    def readings(self, job: str) -> Readings:
        if self._address.prometheus_url is None:
            return RestReadings(self._rest, job, self.found.refresh_s)
        from flink_client.metrics.prometheus import PrometheusReadings  # its client takes a second to import

        names = [room.task_manager for room in self.found.rooms]
        return PrometheusReadings(self._address.prometheus_url, job, names)

    def place(self, tasks: Collection[PlacedTask]) -> None:
        """Refuse a placement: Flink places tasks here."""
        if tasks:
            raise InvalidInput(f"tasks cannot be placed on the cluster at {self._rest.url}; leave the placement out")

    def check(self) -> None:
        """Nothing to check: its processes are not Sluice's, and failures show in the requests."""

    @property
    def takes_savepoints(self) -> bool:
        return self.found.takes_savepoints

    def require_slots(self, tasks: int, sources: int) -> None:
        """
        Args:
            tasks: all tasks to run, sources included.

        Raises:
            Infeasible: there are fewer free slots.
        """
        until = time.monotonic() + _FREED_S  # a previous job may still be ending
        while (free := sum(one.free_slots for one in self._rest.task_managers())) < tasks:
            if time.monotonic() > until:
                raise Infeasible(
                    f"{tasks} tasks ({sources} of them of sources) need as many free slots, but the cluster at "
                    f"{self._rest.url} has {free}; measure with fewer (--max-slots), cancel other jobs or add TaskManagers"
                )
            time.sleep(_LOOK_EVERY_S)

    def close(self) -> None:
        """Remove the uploaded jars, also one whose upload was interrupted, and jobs that run; may be called twice."""
        try:
            self._remove(self._noted)
            self._ledger.close()
        except SluiceError as error:
            self._report(f"a job or a jar may be left on {self._rest.url}: {error}", 1.0)
        finally:
            self._ledger.close(removed=False)
            self._jars, self._noted = {}, []
            if self._server is not None:
                self._server.close()
                self._server = None
            self._rest.close()

    def _note(self, entry: Entry) -> None:
        self._ledger.note(entry)
        self._noted.append(entry)

    def _remove_abandoned(self) -> None:
        for entries in abandoned(self._rest.url):
            jobs, jars = self._remove(entries)
            if jobs or jars:
                self._report(f"removed what a killed measurement left there: {jobs} jobs, {jars} jars", 1.0)

    def _remove(self, entries: Sequence[Entry]) -> tuple[int, int]:
        """Cancel the jobs and delete the jars. Returns how many there were."""
        ours = {entry["id"] for entry in entries if entry["kind"] == _JOB}
        listed = self._rest.get("/jobs/overview")["jobs"] if ours else []
        running = [one["jid"] for one in listed if one["jid"] in ours and one["state"] not in ENDED]
        for id_ in running:
            self._rest.cancel(id_)
        marks = tuple(entry["mark"] for entry in entries if entry["kind"] == _JARS)
        jars = [jar for jar in self._rest.jars() if jar.endswith(marks)] if marks else []
        for jar in jars:
            self._rest.delete_jar(jar)
        return len(running), len(jars)
