"""Carrying out an intent in place: request the tasks, wait until they run, take it back otherwise.

Every step may be repeated: a process that is killed anywhere leaves an intent that another one carries out to its end.
"""

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from flink_client.jobs.deployment import runs_as_placed
from flink_client.jobs.rescales import COMPLETED, rescales
from flink_client.jobs.running import NotRunning, running_job
from flink_client.rest.client import FlinkRest
from flink_client.rest.transport import NoAccess
from flink_client.rest.waiting import TimedOut
from models.errors import SluiceError
from pipelines.control.actions.carrying import BACK_S, Carried, Carrying
from pipelines.control.actions.intents import TAKING_BACK, Intent, IntentJournal, IntentStep
from pipelines.control.actions.placing import put, put_back

LEAST: Final = 1
"""Tasks with which a vertex goes on while slots are missing, as Flink itself sets it and the operator's autoscaler does."""
_logger = logging.getLogger(__name__)


class InPlaceActuator:
    """Carries out the intents of one job that runs with the adaptive scheduler."""

    def __init__(self, rest: FlinkRest, journal: IntentJournal, carrying: Carrying, *, timeout_s: float) -> None:
        """
        Args:
            timeout_s: for the wanted tasks to run; the former ones get as much time, and at least a minute.
        """
        self._rest, self._journal, self._carrying, self._timeout_s = rest, journal, carrying, timeout_s

    def carry_out(self, intent: Intent) -> Carried:
        """Bring an intent to its end, from wherever it stands.

        Raises:
            SluiceError: Flink did not answer before anything was changed, or `beat` ended it; it can be carried out later.
        """
        self._carrying.begin()
        if (step := self._journal.marked(intent.number, TAKING_BACK)) is not None:
            return self._take_back(intent, step.said)
        return self._requested(intent)

    def _requested(self, intent: Intent) -> Carried:
        required = self._rest.requirements(intent.flink_job)
        former = intent.required_before or intent.before
        if any(required.get(v) not in (n, former.get(v)) for v, n in intent.wanted.items()):
            why = "someone else has requested other tasks meanwhile, which were left alone"
            return self._carrying.ended("failed", intent.flink_job, why, someone_else=True)
        known = self._recorded(intent.flink_job)
        put(intent.placement)
        try:
            try:
                self._rest.require(intent.flink_job, intent.wanted, LEAST)
            except NoAccess as error:
                if any(required.get(v) != former.get(v) for v in intent.wanted):
                    raise  # an earlier attempt was let through; it is brought to its end once this one is
                put_back(intent.placement)
                return self._carrying.ended("refused", intent.flink_job, f"{error}; nothing was changed")
            self._carrying.until_runs(intent.flink_job, intent.wanted, intent.before, self._timeout_s)
        except (NotRunning, TimedOut) as error:
            return self.take_back(intent, f"{error}{self._flinks_word(intent.flink_job, known)}")
        ended = self._carrying.ended("rescaled", intent.flink_job, None)
        times = [s for id_, (_, _, s) in self._recorded(intent.flink_job).items() if id_ not in known and s is not None]
        return replace(ended, flinks_rescale_s=sum(times) if times else None, as_placed=self._as_placed(intent))

    def take_back(self, intent: Intent, why: str) -> Carried:
        """Request the former tasks again, and wait until they run.

        Raises:
            SluiceError: as `carry_out`, which then takes it back.
        """
        self._journal.mark(intent.number, TAKING_BACK, IntentStep(at=datetime.now(UTC), said=why))
        return self._take_back(intent, why)

    def _take_back(self, intent: Intent, why: str) -> Carried:
        put_back(intent.placement)
        try:
            self._rest.require(intent.flink_job, intent.required_before or intent.before, LEAST)
            self._carrying.until_runs(intent.flink_job, {}, {}, max(self._timeout_s, BACK_S))
        except (NotRunning, TimedOut) as error:
            return self._carrying.ended(
                "failed", intent.flink_job, f"{why}; the former tasks do not run either: {error}"
            )
        return self._carrying.ended("rolled-back", intent.flink_job, why)

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
