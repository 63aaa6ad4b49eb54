"""What has happened to a job so far, as far as the next decision depends on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from models.errors import InvalidInput
from models.scaling.control.guard import ActionHistory
from models.scaling.control.harm import JobProgress, did_worse
from models.scaling.policy import Rescaled
from models.scaling.rates import Rates
from models.scaling.sluice.learned.capacity import lag_of, read_rate
from pipelines.control.actions.carrying import Carried
from pipelines.control.actions.intents import Intent
from pipelines.control.record import AutopilotDecision

MOST_RESTARTS: Final = 2
"""Restarts by itself within the time in which a rescale is judged, from which on the rescale counts as their cause."""


@dataclass(frozen=True)
class Probation:
    """A rescale whose effect is not known yet."""

    before: Mapping[str, int]
    """Tasks of each vertex, by name."""
    progress: JobProgress
    ended_s: float
    slots: int | None = None
    """Of the cluster for the job, where they are known."""
    restarts: int = 0


@dataclass
class JobAccount:
    """Of one job. Times are seconds of the process's clock, but for those of the history."""

    history: ActionHistory = field(default_factory=ActionHistory)
    last: Rescaled | None = None
    """With `ended_s` of the process's clock."""
    required: dict[str, int] | None = None
    """Requested tasks by vertex id, as they were last seen or set by this autopilot."""
    probation: Probation | None = None
    progress: JobProgress | None = None
    """In the last interval that was measured."""

    def see_required(self, required: Mapping[str, int] | None, now: datetime) -> bool:
        """Take note of the requested tasks; whether someone else has changed them."""
        if required is None:
            return False
        before, self.required = self.required, dict(required)
        changed = before is not None and before.keys() == required.keys() and before != self.required
        if changed:
            self.history = self.history.changed_by_someone(now)
            self.probation = None
        return changed

    def see_progress(self, progress: JobProgress, time_s: float, judge_s: float) -> str | None:
        """Take note of how the job gets on; why its last rescale did harm, once that can be judged."""
        self.progress = progress
        on = self.probation
        if on is None or time_s < on.ended_s + judge_s:
            return None
        self.probation = None
        worse = did_worse(on.progress, progress)
        if worse is not None:
            self.probation = on
        return worse

    def judge(self, rates: Rates, time_s: float, judge_s: float) -> str | None:
        """Why the last rescale did harm; None while that is not known, or if it did none."""
        try:
            progress = JobProgress(read_rate(rates), sum(rates.source_rates.values()), lag_of(rates))
        except InvalidInput:
            return None
        return self.see_progress(progress, time_s, judge_s)

    def see_restart(self, slots: int | None) -> str | None:
        """Take note that the job was started again by itself; why its last rescale is to blame, if it is.

        Where slots are gone since, the cluster has lost TaskManagers, and that is why.
        """
        on = self.probation
        if on is None:
            return None
        if slots is not None and on.slots is not None and slots < on.slots:
            self.probation = None
            return None
        self.probation = replace(on, restarts=on.restarts + 1)
        restarts = self.probation.restarts
        return f"it was started again {restarts} times since" if restarts >= MOST_RESTARTS else None

    def after(
        self, intent: Intent, carried: Carried, time_s: float, now: datetime, state_mb: float, slots: int | None
    ) -> None:
        """Take note of how an action ended."""
        if carried.someone_else:
            self.history = self.history.changed_by_someone(now)
        succeeded = carried.done == "rescaled" and intent.purpose == "rescale"
        self.history = self.history.rescaled(now) if succeeded else self.history.without_success(now)
        self.probation = None
        if carried.done == "rescaled":
            downtime_s = carried.seconds if carried.downtime_s is None else carried.downtime_s
            self.last = Rescaled(time_s, downtime_s, state_mb)
        if succeeded and self.progress is not None:
            before = {intent.names[id_]: tasks for id_, tasks in intent.before.items()}
            self.probation = Probation(before, self.progress, time_s, slots)
        self.required = None
        if intent.required_before is not None and carried.done in ("rescaled", "rolled-back"):
            wanted = intent.wanted if carried.done == "rescaled" else {}
            self.required = {**intent.required_before, **wanted}

    def resume(self, newest: AutopilotDecision | None, now: datetime, time_s: float, judge_s: float) -> None:
        """Judge a rescale that a former process has made a moment ago."""
        if newest is None or newest.done != "rescaled" or newest.rescale is None:
            return
        age_s = (now - newest.decided_at).total_seconds()
        seen = newest.seen
        if age_s < judge_s and seen.read_rate is not None and seen.arriving_rate is not None:
            progress = JobProgress(seen.read_rate, seen.arriving_rate, seen.lag_records)
            self.probation = Probation(newest.rescale.before, progress, time_s - age_s)
