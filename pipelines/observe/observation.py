"""Observing one running job: read it for a while, store its samples and what they show."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Final

import yaml

from flink_client.jobs.running import find_job, last_ended
from flink_client.rest.answers import ENDED, flinks_answers
from flink_client.rest.client import FlinkRest
from models.capacity.diagnosis.facts import BoundFacts
from models.capacity.observed.external import suspected_limit
from models.capacity.observed.observing import observe, observed_facts
from models.capacity.observed.record import ObservedJob
from models.capacity.observed.surroundings import Surroundings
from models.errors import InvalidInput, SluiceError
from models.job import Job
from pipelines.observe.job_file import job_of, operator_names, safe_name
from pipelines.observe.log_ends import BrokerLogEnds
from pipelines.observe.samples import keep_samples, samples_of
from pipelines.observe.watching import Watched, watch
from pipelines.progress import Progress
from pipelines.store.workspace import Damaged, Missing, Workspace

FOLDER: Final = "observed"
EARLIER: Final = timedelta(days=14)
"""Age up to which observations of the same job are compared with."""
MOST_EARLIER: Final = 50


@dataclass(frozen=True)
class Observed:
    """What was observed, and where it is kept."""

    job: ObservedJob
    watched: Watched
    about: Surroundings
    uri: str
    samples_key: str
    """In the workspace."""

    @cached_property
    def facts(self) -> BoundFacts | None:
        """How busy each vertex was; None where nothing ran."""
        return observed_facts(self.watched.readings, self.about)

    @property
    def operators(self) -> dict[str, str]:
        """Name of each vertex as an operator, by id."""
        return operator_names(self.job.vertices)

    def as_job(self) -> Job:
        """The job as a file says it. Raises InvalidInput if fewer than two vertices run."""
        return job_of(self.job, self.about.edges, self._cpu_s_per_record())

    def _cpu_s_per_record(self) -> Mapping[str, float]:
        """By vertex id; without those that no record came into."""
        names = self.operators
        samples = samples_of(self.watched.readings, safe_name(self.job.job), names, "observed")
        totals = samples.group_by("operator").aggregate([("records_in", "sum"), ("cpu_s", "sum")]).to_pylist()
        costs = {row["operator"]: row["cpu_s_sum"] / row["records_in_sum"] for row in totals if row["records_in_sum"]}
        return {id_: costs[name] for id_, name in names.items() if name in costs}


def running_job_id(rest: FlinkRest, named: str | None) -> str:
    """Id of the job with this id or name; without one, of the only job that runs.

    Raises:
        InvalidInput: there is none, or several; the message lists those that run.
    """
    with flinks_answers(rest.url):
        listed = rest.get("/jobs/overview")["jobs"]
        jobs = [one for one in listed if one["state"] not in ENDED]
        if named is not None:
            by_id = any(one["jid"] == named for one in listed)
            return find_job(rest, named, named if by_id else None)
        if len(jobs) == 1:
            return str(jobs[0]["jid"])
        ended = None if jobs else last_ended(listed)
        there = ", ".join(f"{one['name']!r} ({one['jid']})" for one in jobs) or f"none{f' ({ended})' if ended else ''}"
        raise InvalidInput(f"one job must run on {rest.url}, or be named with --job, but there run: {there}")


def observe_job(
    rest: FlinkRest, id_: str, seconds: float, workspace: Workspace, progress: Progress, kafka: str | None = None
) -> Observed:
    """Read a running job for a while. Nothing is changed on the cluster.

    Args:
        kafka: bootstrap servers of the topics that it reads, to count what waits there; None: as the sources report it.

    Raises:
        InvalidInput: it was observed for too short a time.
        SluiceError: the job has ended, Flink does not answer, or reports no metrics.
    """
    watched = watch(rest, id_, seconds, progress, log_ends=None if kafka is None else BrokerLogEnds(kafka))
    return kept(watched, workspace)


def kept(watched: Watched, workspace: Workspace) -> Observed:
    """Store what was watched, and what it shows.

    Raises:
        InvalidInput: it was observed for too short a time.
        SluiceError: there are no metrics.
    """
    if watched.about is None:
        raise SluiceError(f"nothing was read of job {watched.job}; check that it runs, and observe again")
    found = observe(watched.readings, watched.about)
    name, now = safe_name(found.job), datetime.now(UTC)
    found = found.model_copy(
        update={
            "remarks": (*found.remarks, *watched.gaps),
            "suspected_limit": suspected_limit(found, watched.about, _earlier(workspace, name, now)),
        }
    )
    began = now - timedelta(seconds=watched.readings[-1].time_s - watched.readings[0].time_s)
    samples = samples_of(watched.readings, name, operator_names(found.vertices), f"observed-{began:%Y%m%dT%H%M%SZ}")
    if samples.num_rows == 0:
        if watched.about.failures:
            raise SluiceError(
                f"job {found.job!r} failed and was started again {found.restarts} time(s) within {found.observed_s:,.0f} s, so "
                f"that nothing was counted; the last time because of: {watched.about.failures[0]}"
            )
        raise SluiceError(
            f"Flink reported no counters of the tasks of job {found.job!r} within {found.observed_s:,.0f} s; check that its "
            "tasks run and that metrics are fetched (metrics.fetcher.update-interval above 0), or observe for longer with --for"
        )
    key = f"{FOLDER}/{name}/{now:%Y%m%dT%H%M%SZ}.json"
    samples_key = keep_samples(workspace, samples, name, began)
    workspace.write(key, found)
    return Observed(found, watched, watched.about, workspace.uri(key), samples_key)


def _earlier(workspace: Workspace, name: str, now: datetime) -> list[ObservedJob]:
    """Earlier observations of a job, the newest first. Old ones may be of another program; damaged ones are left out."""
    first = f"{FOLDER}/{name}/{now - EARLIER:%Y%m%dT%H%M%SZ}.json"
    found = []
    for key in sorted((key for key in workspace.list(f"{FOLDER}/{name}") if key >= first), reverse=True)[:MOST_EARLIER]:
        with suppress(Damaged, Missing):
            found.append(workspace.read(key, ObservedJob))
    return found


def job_file_text(job: Job) -> str:
    """The job as YAML."""
    content = job.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return yaml.safe_dump({"schema_version": 1, **content}, sort_keys=False, allow_unicode=True, width=120)


def checked_new(path: Path) -> None:
    """Raises InvalidInput: a job file cannot be written there, since there is a file already, or no folder."""
    if path.exists():
        raise InvalidInput(f"{path} exists already; remove it, or name another file with --write-job")
    if not path.parent.is_dir():
        raise InvalidInput(
            f"the folder of a job file must exist, but there is none at {path.parent}; make it, or name another file with "
            "--write-job"
        )


def write_job_file(job: Job, path: Path) -> None:
    """Write the job as a YAML file that the catalogue reads.

    Raises:
        InvalidInput: there is a file already, or it cannot be written.
    """
    checked_new(path)
    try:
        path.write_text(job_file_text(job), encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"the job file {path} cannot be written: {error}") from error
