"""Which decisions are stored, and what is remembered of them after a restart."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from models.scaling.control.guard import ActionHistory
from models.scaling.control.limits import DAY_S
from pipelines.control.files import AutopilotFiles
from pipelines.control.record import AutopilotDecision

QUIET_EVERY_S: Final = 60.0
"""Equal outcomes in a row are stored so often."""
_ACTIONS: Final = frozenset({"rescaled", "refused", "failed", "rolled-back"})


@dataclass
class Diary:
    """Stores the decisions of one job."""

    files: AutopilotFiles
    number: int
    """Of the next record."""
    _last: tuple[datetime, object] | None = None
    _rounds: int = field(default=0)

    def keep(self, decision: AutopilotDecision) -> AutopilotDecision | None:
        """Store it if it is news: an action, another outcome than before, or a minute has passed. Returns what was stored."""
        self._rounds += 1
        key = (decision.done, decision.held, None if decision.advice is None else decision.advice.parallelism)
        quiet = decision.done not in _ACTIONS and self._last is not None and self._last[1] == key
        if quiet and self._last is not None and (decision.decided_at - self._last[0]).total_seconds() < QUIET_EVERY_S:
            return None
        stored = decision.model_copy(update={"rounds": self._rounds})
        self.files.keep(stored)
        self.number = stored.number + 1
        self._rounds = 0
        self._last = (decision.decided_at, key)
        return stored


def history_of(files: AutopilotFiles, now: datetime) -> tuple[ActionHistory, AutopilotDecision | None]:
    """What was done in the last day by the records of a job, and the record of the newest action."""
    history, newest = ActionHistory(), None
    for decision in files.decisions(since=now.astimezone(UTC) - timedelta(seconds=DAY_S)):
        newest = decision if decision.done in _ACTIONS else newest
        if decision.done == "rescaled":
            history = history.rescaled(decision.decided_at)
        elif decision.done in _ACTIONS:
            history = history.without_success(decision.decided_at)
        if decision.someone_else_at is not None:
            history = history.changed_by_someone(decision.someone_else_at)
    return history, newest
