"""The decisions of the last hours, kept in memory: records never change, so only new ones are read."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from pipelines.control.files import AutopilotFiles
from pipelines.control.record import AutopilotDecision

MOST_HOURS: Final = 24
"""Longest time that is shown, hours."""
_MOST_JOBS: Final = 8
"""Jobs whose decisions are kept, the last used ones; a day of one job has 1,440 records and some."""


def _now() -> datetime:
    return datetime.now(UTC)


class RecentDecisions:
    """Decisions of the jobs that people look at, for one process with threads."""

    def __init__(self, now: Callable[[], datetime] = _now) -> None:
        self._now = now
        self._kept: OrderedDict[tuple[str, str], list[AutopilotDecision]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, files: AutopilotFiles, hours: float) -> tuple[AutopilotDecision, ...]:
        """Decisions of the last hours, the first one first.

        Args:
            hours: at most MOST_HOURS.

        Raises:
            Damaged: a record is truncated or not valid.
        """
        oldest = self._now() - timedelta(hours=MOST_HOURS)
        key = (files.workspace.url, files.job)
        with self._lock:
            kept = [one for one in self._kept.get(key, []) if one.decided_at >= oldest]
            if kept:
                kept += files.decisions(since=kept[-1].decided_at, after=kept[-1].number)
            else:
                kept += files.decisions(since=oldest)
            self._kept[key] = kept
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_JOBS:
                self._kept.popitem(last=False)
        since = self._now() - timedelta(hours=hours)
        return tuple(one for one in kept if one.decided_at >= since)
