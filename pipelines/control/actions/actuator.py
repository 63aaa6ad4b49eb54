"""Carrying out an intent: request the tasks, wait until they run, take it back otherwise.

Every step may be repeated: a process that is killed anywhere leaves an intent that another one carries out to its end.
"""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, Literal

from flink_client.jobs.deployment import runs_as_placed
from flink_client.jobs.rescales import COMPLETED, rescales
from flink_client.jobs.restart import Restart
from flink_client.jobs.running import NotRunning, awaited, running_job
from flink_client.rest.answers import ENDED
from flink_client.rest.client import FlinkRest
from flink_client.rest.transport import NoAccess
from flink_client.rest.waiting import TimedOut
from models.errors import SluiceError
from pipelines.control.actions.intents import SAVEPOINT, TAKING_BACK, Intent, IntentJournal, IntentStep
from pipelines.control.actions.placing import put, put_back

LOOK_EVERY_S: Final = 0.2
LEAST: Final = 1
"""Tasks with which a vertex goes on while slots are missing, as Flink itself sets it and the operator's autoscaler does."""
BACK_S: Final = 60.0
"""Shortest time limit for the former tasks to run again."""
_logger = logging.getLogger(__name__)


CarriedDone = Literal["rescaled", "refused", "failed", "rolled-back"]


@dataclass(frozen=True)
class Carried:
    """How an intent ended."""

    done: CarriedDone
    flink_job: str
    seconds: float
    """From the first request of this process to the end."""
    downtime_s: float | None
    """From the last look at which all former tasks ran to the first at which all wanted ones did."""
    why: str | None = None
    flinks_rescale_s: float | None = None
    someone_else: bool = False
    """Whether others have changed the requirements meanwhile, which were left alone."""
    as_placed: bool | None = None
    """Whether the tasks run where the placement hook was to put them; None where it was not asked, or that was not seen."""


class Actuator:
    """Carries out the intents of one job."""

    def __init__(
        self,
        rest: FlinkRest,
        journal: IntentJournal,
        *,
        timeout_s: float,
        restart: Restart | None = None,
        beat: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """
        Args:
            timeout_s: for the wanted tasks to run; the former ones get as much time, and at least a minute.
            restart: the program, where a change takes a restart.
            beat: called while it waits; it may raise to end the waiting.
        """
        self._rest, self._journal, self._restart = rest, journal, restart
        self._timeout_s, self._beat, self._clock, self._sleep = timeout_s, beat, clock, sleep
        self._begun_s = self._up_s = clock()

    def carry_out(self, intent: Intent) -> Carried:
        """Bring an intent to its end, from wherever it stands.

        Raises:
            SluiceError: Flink did not answer before anything was changed, or `beat` ended it; it can be carried out later.
        """
        self._begun_s, self._up_s = self._clock(), self._clock()
        return self._in_place(intent) if intent.method == "in-place" else self._by_restart(intent)

    def take_back(self, intent: Intent, why: str) -> Carried:
        """Request the former tasks again, and wait until they run.

        Raises:
            SluiceError: as `carry_out`, which then takes it back.
        """
        self._journal.mark(intent.number, TAKING_BACK, IntentStep(at=datetime.now(UTC), said=why))
        return self._take_back(intent, why)

    # --- in place

    def _in_place(self, intent: Intent) -> Carried:
        if (step := self._journal.marked(intent.number, TAKING_BACK)) is not None:
            return self._take_back(intent, step.said)
        required = self._rest.requirements(intent.flink_job)
        former = intent.required_before or intent.before
        if any(required.get(v) not in (n, former.get(v)) for v, n in intent.wanted.items()):
            why = "someone else has requested other tasks meanwhile, which were left alone"
            return self._ended("failed", intent.flink_job, why, someone_else=True)
        known = self._recorded(intent.flink_job)
        put(intent.placement)
        try:
            try:
                self._rest.require(intent.flink_job, intent.wanted, LEAST)
            except NoAccess as error:
                if any(required.get(v) != former.get(v) for v in intent.wanted):
                    raise  # an earlier attempt was let through; it is brought to its end once this one is
                put_back(intent.placement)
                return self._ended("refused", intent.flink_job, f"{error}; nothing was changed")
            self._wait(intent.flink_job, intent.wanted, intent.before, self._timeout_s)
        except (NotRunning, TimedOut) as error:
            return self.take_back(intent, f"{error}{self._flinks_word(intent.flink_job, known)}")
        ended = self._ended("rescaled", intent.flink_job, None)
        times = [s for id_, (_, _, s) in self._recorded(intent.flink_job).items() if id_ not in known and s is not None]
        return replace(ended, flinks_rescale_s=sum(times) if times else None, as_placed=self._as_placed(intent))

    def _take_back(self, intent: Intent, why: str) -> Carried:
        put_back(intent.placement)
        try:
            self._rest.require(intent.flink_job, intent.required_before or intent.before, LEAST)
            self._wait(intent.flink_job, {}, {}, max(self._timeout_s, BACK_S))
        except (NotRunning, TimedOut) as error:
            return self._ended("failed", intent.flink_job, f"{why}; the former tasks do not run either: {error}")
        return self._ended("rolled-back", intent.flink_job, why)

    def _as_placed(self, intent: Intent) -> bool | None:
        """Whether the tasks run where they were to go; None where nothing was said of it, or it was not seen."""
        if intent.placement is None:
            return None
        try:
            running = running_job(self._rest, intent.flink_job)
        except SluiceError as error:
            _logger.warning("where the tasks run was not read: %s", error)
            return None
        return runs_as_placed(
            intent.placement.tasks, {intent.names[v.id]: v for v in running.vertices if v.id in intent.wanted}
        )

    # --- by a savepoint and a restart

    def _by_restart(self, intent: Intent) -> Carried:
        assert self._restart is not None
        if (step := self._journal.marked(intent.number, TAKING_BACK)) is not None:
            return self._start_former(intent, self._savepoint(intent), step.said)
        try:
            savepoint = self._savepoint(intent)
        except SluiceError as error:
            if self._state(intent.flink_job) in ENDED:
                return self._ended("failed", intent.flink_job, f"{error}; the job has ended")
            return self._ended("refused", intent.flink_job, f"no savepoint: {error}; the job runs on")
        try:
            self._start(intent.new_job, intent.wanted, savepoint)
            self._wait(intent.new_job, intent.wanted, {}, self._timeout_s)
        except (NotRunning, TimedOut, SluiceError) as error:
            said = str(error)
            self._journal.mark(intent.number, TAKING_BACK, IntentStep(at=datetime.now(UTC), said=said))
            return self._start_former(intent, savepoint, said)
        return self._ended("rescaled", intent.new_job, None)

    def _savepoint(self, intent: Intent) -> str:
        """The savepoint, taken if it was not yet; the job has ended then."""
        assert self._restart is not None
        if (step := self._journal.marked(intent.number, SAVEPOINT)) is not None:
            return step.said
        path = f"/jobs/{intent.flink_job}/savepoints/{intent.savepoint_trigger}"
        if self._state(intent.flink_job) in ENDED:
            savepoint = self._of_ended(intent.flink_job)
        elif self._rest.get_if_there(path) is not None:
            savepoint = self._rest.savepoint_of(path, self._timeout_s)
        else:
            savepoint = self._rest.savepoint(
                intent.flink_job,
                self._restart.savepoints,
                cancel=True,
                seconds=self._timeout_s,
                trigger=intent.savepoint_trigger,
            )
        self._journal.mark(intent.number, SAVEPOINT, IntentStep(at=datetime.now(UTC), said=savepoint))
        self._until(lambda: None if self._state(intent.flink_job) in ENDED else "it still runs", BACK_S)
        return savepoint

    def _of_ended(self, job: str) -> str:
        """The savepoint with which a job was cancelled, that Flink remembers with it."""
        latest = (self._rest.get_if_there(f"/jobs/{job}/checkpoints") or {}).get("latest") or {}
        found = (latest.get("savepoint") or {}).get("external_path")
        if not found:
            raise SluiceError(f"job {job} has ended without a savepoint that Flink remembers")
        return str(found)

    def _start(self, job: str, tasks: Mapping[str, int], savepoint: str) -> None:
        """Start the program with this id, unless it was."""
        assert self._restart is not None
        if self._state(job) is None:
            self._restart.run(self._rest, tasks, savepoint, job)

    def _start_former(self, intent: Intent, savepoint: str, why: str) -> Carried:
        with suppress(SluiceError):
            self._rest.cancel(intent.new_job)
        try:
            self._until(lambda: None if self._state(intent.new_job) in (None, *ENDED) else "it still runs", BACK_S)
            self._start(intent.former_job, intent.before, savepoint)
            self._wait(intent.former_job, intent.before, {}, max(self._timeout_s, BACK_S))
        except SluiceError as error:
            said = f"{why}; starting the former tasks failed, too: {error}; its savepoint is {savepoint}"
            return self._ended("failed", intent.former_job, said)
        return self._ended("rolled-back", intent.former_job, why)

    # --- looking

    def _state(self, job: str) -> str | None:
        """Of a job; None if Flink does not know it."""
        answer = self._rest.get_if_there(f"/jobs/{job}")
        return None if answer is None else str(answer["state"])

    def _wait(self, job: str, wanted: Mapping[str, int], former: Mapping[str, int], seconds: float) -> None:
        """Until all tasks run as wanted.

        Raises:
            NotRunning: the job has ended.
            TimedOut: they do not.
        """

        def missing() -> str | None:
            running, what = awaited(self._rest, job, wanted)
            if (
                what is not None
                and running is not None
                and all(running.parallelism.get(v) == n for v, n in former.items())
            ):
                self._up_s = self._clock()
            return what

        self._until(missing, seconds)

    def _until(self, missing: Callable[[], str | None], seconds: float) -> None:
        until = self._clock() + seconds
        while (what := missing()) is not None:
            if self._clock() > until:
                raise TimedOut(f"{what} after {seconds:g} s")
            self._beat()
            self._sleep(LOOK_EVERY_S)

    def _recorded(self, job: str) -> dict[str, tuple[str | None, str | None, float | None]]:
        """Flink's own history of rescales by id; empty where it keeps none."""
        try:
            return {one.id: (one.state, one.reason, one.seconds) for one in rescales(self._rest, job) or ()}
        except SluiceError as error:
            _logger.warning("Flink's history of rescales was not read: %s", error)
            return {}

    def _flinks_word(self, job: str, known: Mapping[str, object]) -> str:
        new = [
            (s, why)
            for id_, (s, why, _) in self._recorded(job).items()
            if id_ not in known and s not in (None, COMPLETED)
        ]
        return f" (Flink's history of rescales: {new[0][0]}, {new[0][1]})" if new else ""

    def _ended(
        self,
        done: CarriedDone,
        job: str,
        why: str | None,
        *,
        someone_else: bool = False,
    ) -> Carried:
        now_s = self._clock()
        downtime_s = now_s - self._up_s if done == "rescaled" else None
        return Carried(done, job, now_s - self._begun_s, downtime_s, why, None, someone_else)
