"""Checking many jobs for drift: in batches, each in one process and with one Spark session."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from models.errors import SluiceError
from pipelines.drift.detect import detect_drift
from pipelines.drift.request import ReprofileRequest, can_be_measured, request_reprofile
from pipelines.progress import Progress
from pipelines.store.workspace import Workspace

MOST_JOBS: Final = 25
"""Most jobs of a batch. The first check of a process takes 14 to 18 CPU seconds, with the start of Python and Spark, and each
further one 0.9 to 1.5: with 25 jobs 1.4 to 2.0 a job, and more jobs save little. On a busy machine a batch takes minutes, and
its task has an hour."""


@dataclass(frozen=True)
class CheckedBatch:
    """The outcome of a batch."""

    requests: tuple[ReprofileRequest, ...]
    """What was requested, by this check or by one of the same samples before."""
    failures: Mapping[str, Exception]
    """Job -> why it could not be checked."""
    outdated: Mapping[str, str]
    """Job whose plan was made from the running job, which has drifted since -> why; no measurement is requested of it."""

    @property
    def unexpected(self) -> tuple[Exception, ...]:
        """The failures that Sluice did not raise deliberately, so that they may pass."""
        return tuple(error for error in self.failures.values() if not isinstance(error, SluiceError))

    def __str__(self) -> str:
        return "; ".join(f"{job} ({_in_one_line(error)})" for job, error in self.failures.items())


def in_batches(jobs: Sequence[str]) -> list[list[str]]:
    """As few batches as hold all jobs, whose sizes differ by one at most."""
    count = -(-len(jobs) // MOST_JOBS)
    return [list(jobs[number::count]) for number in range(count)]


def check_batch(
    workspace: Workspace, jobs: Sequence[str], samples: str | None, now: Callable[[], datetime], progress: Progress
) -> CheckedBatch:
    """Check jobs for drift one after another, and keep the requests for new measurements that follow.

    A job that cannot be checked does not stop the others. Each outcome is reported as a line that names the job.

    Args:
        samples: as for `find_samples`.
        now: the clock, with a time zone.
    """
    requests: list[ReprofileRequest] = []
    failures: dict[str, Exception] = {}
    outdated: dict[str, str] = {}
    for job in jobs:
        try:
            report = detect_drift(workspace, job, samples, progress)
            if report.drifted and not can_be_measured(workspace, job):
                outdated[job] = report.reason
                progress.say(f"drift: {job} was planned as it ran; plan it from the running job again")
                continue
            asked = request_reprofile(workspace, report, now())
        except Exception as error:  # of any kind: the other jobs must be checked still
            failures[job] = error
            progress.say(f"drift: {job} could not be checked: {_in_one_line(error)}")
            continue
        if asked is not None:
            requests.append(asked)
            progress.say(f"drift: new measurements of {job} are requested")
        elif report.drifted:
            progress.say(f"drift: new measurements of {job} were requested before")
    return CheckedBatch(tuple(requests), failures, outdated)


def _in_one_line(error: Exception, characters: int = 500) -> str:
    text = " ".join(str(error).split())[:characters] or "no reason given"
    return text if isinstance(error, SluiceError) else f"{type(error).__name__}: {text}"
