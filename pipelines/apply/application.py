"""Applying a prepared plan: change the job, verify it, observe its effect, and roll back on failure."""

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from flink_client.jobs.deployment import placed_as_planned, shared_as_planned
from flink_client.jobs.rescales import COMPLETED, RecordedRescale, rescales
from flink_client.jobs.running import awaited, tasks_in_slots
from flink_client.rest.answers import flinks_answers
from flink_client.rest.client import FlinkRest
from flink_client.rest.transport import NoAccess
from models.errors import SluiceError
from pipelines.apply.applied import Applied, Effect, Outcome, compared
from pipelines.apply.change import Change, change_for
from pipelines.apply.effect import BEFORE_S, SETTLE_S, observed
from pipelines.apply.preparation import Preparation
from pipelines.store.digests import digest

_BACK_S: Final = 60.0
"""Shortest time limit for the former tasks to run again: giving up earlier does not help."""
_LOOK_EVERY_S: Final = 0.3
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _End:
    outcome: Outcome
    reason: str
    job_id: str
    seconds: float
    effect: Effect | None = None
    flinks_rescale_s: float | None = None


def apply(
    rest: FlinkRest,
    preparation: Preparation,
    *,
    timeout_s: float,
    observe_s: float,
    say: Callable[[str], None] = lambda what: None,
) -> Applied:
    """Make Flink run the plan, or restore the previous state if that fails.

    Args:
        timeout_s: for the plan to run; restoring the previous state gets as much time, and at least a minute.
        observe_s: how long the job is observed afterwards, and up to 15 s before; 0: not at all. A plan that makes the
            job worse is then not noticed.
        say: called with each step.

    Returns:
        The outcome; failures are recorded in it, not raised.

    Raises:
        KeyboardInterrupt: it was stopped; the former state was requested again.
    """
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    end = _Application(rest, preparation, timeout_s, observe_s, say).end()
    as_planned = preparation.as_planned and end.outcome in ("applied", "unchanged")
    return Applied(
        job=preparation.plan.job,
        version=preparation.plan.version,
        plan_digest=digest(preparation.plan),
        flink_url=without_password(rest.url),
        flink_job=end.job_id,
        started_at=started_at,
        seconds=round(end.seconds, 3),
        flinks_rescale_s=end.flinks_rescale_s,
        method=preparation.method,
        placement="as-planned" if as_planned else "advice",
        outcome=end.outcome,
        reason=end.reason,
        changes=preparation.changes,
        advice=preparation.advice,
        effect=end.effect,
    )


def _seconds(recorded: Sequence[RecordedRescale]) -> float | None:
    """Of all rescales that completed; None without any. A placement can take two."""
    times = [one.seconds for one in recorded if one.state == COMPLETED and one.seconds is not None]
    return round(sum(times), 3) if times else None


def without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


class _Application:
    def __init__(
        self,
        rest: FlinkRest,
        preparation: Preparation,
        timeout_s: float,
        observe_s: float,
        say: Callable[[str], None],
    ) -> None:
        self._rest, self._preparation, self._say = rest, preparation, say
        self._timeout_s, self._observe_s = timeout_s, observe_s
        self._begin = time.monotonic()
        self._job_id = preparation.job.id

    def end(self) -> _End:
        if self._preparation.method == "none":
            return self._ended("unchanged", "Flink runs the plan already", self._observed(self._observe_s))
        with flinks_answers(self._rest.url):
            change = change_for(self._rest, self._preparation)
        before, effect = self._observed(min(self._observe_s, BEFORE_S)), None
        known = {one.id for one in self._rescales()}
        self._begin, accepted = time.monotonic(), self._rest.accepted_changes
        try:
            self._make(change)
            took_s = time.monotonic() - self._begin
            recorded = [one for one in self._rescales() if one.id not in known]
            time.sleep(min(SETTLE_S, self._observe_s / 4))
            effect, worse = compared(before, self._observed(self._observe_s), self._preparation.plan.source_rates)
            self._check(worse)
        except (SluiceError, OSError) as error:
            if isinstance(error, NoAccess) and self._rest.accepted_changes == accepted:
                change.undo_beside_flink()
                return self._ended("rolled-back", f"{error}; nothing was changed")
            return self._roll_back(change, f"{error}{self._flinks_word(known)}", effect)
        except KeyboardInterrupt:
            change.undo()
            raise
        reason = f"Flink runs the plan, {took_s:.1f} s later"
        return _End("applied", reason, self._job_id, took_s, effect, _seconds(recorded))

    def _rescales(self) -> tuple[RecordedRescale, ...]:
        """The job's rescales in Flink's history; none if it keeps none, or does not answer: the plan is verified anyway."""
        if self._preparation.method != "rescale":
            return ()
        try:
            return rescales(self._rest, self._job_id) or ()
        except SluiceError as error:
            _logger.warning("Flink's history of rescales was not read: %s", error)
            return ()

    def _flinks_word(self, known: Collection[str]) -> str:
        """Why Flink did not rescale, by its history; empty if that does not say."""
        ended = [one for one in self._rescales() if one.id not in known and one.state not in (None, COMPLETED)]
        return f" (Flink's history of rescales: {ended[0].state}, {ended[0].reason})" if ended else ""

    def _check(self, worse: str | None) -> None:
        """Raise if the job stopped running as planned, or is worse off."""
        if (missing := self._missing(self._preparation.wanted)) is not None:
            raise SluiceError(f"the plan ran, but the job left it again: {missing}")
        if worse is not None:
            raise SluiceError(worse)

    def _ended(self, outcome: Outcome, reason: str, effect: Effect | None = None) -> _End:
        return _End(outcome, reason, self._job_id, time.monotonic() - self._begin, effect)

    def _make(self, change: Change) -> None:
        self._say(f"{self._preparation.method}: job {self._job_id}")
        with flinks_answers(self._rest.url):
            self._job_id = change.make(self._reached)
        self._reached(self._job_id, self._preparation.wanted)

    def _roll_back(self, change: Change, why: str, effect: Effect | None) -> _End:
        self._say(f"rolling back, since {why}")
        before = self._preparation.job.parallelism
        try:
            with flinks_answers(self._rest.url):
                self._job_id = change.undo()
            self._wait(self._job_id, before, max(self._timeout_s, _BACK_S), placed=False)
        except (SluiceError, OSError) as error:
            return self._ended(
                "failed",
                f"{why}; restoring the previous state failed, too: {error}; restart it from its last checkpoint or savepoint",
                effect,
            )
        return self._ended("rolled-back", f"{why}; the job runs with the tasks that it had before", effect)

    def _observed(self, seconds: float) -> Effect | None:
        return observed(self._rest, self._preparation, self._job_id, seconds, self._say)

    def _reached(self, job_id: str, wanted: Mapping[str, int]) -> None:
        """Wait until the plan, or an intermediate step, runs."""
        placed = self._preparation.move is not None and wanted == self._preparation.wanted
        self._wait(job_id, wanted, self._timeout_s, placed)

    def _wait(self, job_id: str, wanted: Mapping[str, int], seconds: float, placed: bool) -> None:
        self._job_id = job_id
        until = time.monotonic() + seconds
        while (missing := self._missing(wanted, placed)) is not None:
            if time.monotonic() > until:
                raise SluiceError(f"{missing} after {seconds:g} s")
            time.sleep(_LOOK_EVERY_S)

    def _missing(self, wanted: Mapping[str, int], placed: bool = False) -> str | None:
        """What is not (yet) as planned; a cluster that does not answer may do so later.

        Raises:
            NotRunning: the job has ended, so waiting is pointless.
        """
        job, missing = awaited(self._rest, self._job_id, wanted)
        if job is None or missing is not None:
            return missing
        numbered = placed and self._preparation.numbers_slots
        try:
            with flinks_answers(self._rest.url):
                tasks = tasks_in_slots(self._rest, self._job_id) if numbered else None
        except SluiceError as error:
            return str(error)
        preparation = self._preparation
        if placed and not placed_as_planned(preparation.plan, preparation.vertices, job):
            return "not all tasks run where the plan places them"
        if tasks is not None and not shared_as_planned(preparation.plan, job, tasks):
            return "not all tasks share slots as in the plan"
        return None
