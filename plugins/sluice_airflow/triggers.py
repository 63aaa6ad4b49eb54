"""Triggers that start DAG runs."""

from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent


class RateChangeTrigger(BaseEventTrigger):
    """Follows the source rates of all jobs of the workspace (SLUICE_WORKSPACE) that have a plan and, in their file, rules
    for replanning. Sends one event for each change.

    Changes are recorded in the workspace, so a second or restarted trigger does not send them again.

    Args:
        look_every_s: seconds between two listings of the jobs.
    """

    def __init__(self, look_every_s: float = 30.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.look_every_s = look_every_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "sluice_airflow.triggers.RateChangeTrigger", {"look_every_s": self.look_every_s}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from pipelines.rates.threads import in_thread

        async for change in await in_thread(self._changes, "the imports of the stages"):
            yield TriggerEvent(event_of(change))  # type: ignore[no-untyped-call]

    def _changes(self) -> Any:
        # Imported in the thread: the imports take seconds, in which the triggerer must serve other triggers.
        from pipelines.rates.watch import rate_change_events
        from pipelines.store.workspace import Workspace

        return rate_change_events(Workspace(), self.look_every_s)


def event_of(record: Any) -> dict[str, Any]:
    """The content of a change's event: a `RateChangeEvent` as JSON."""
    change, last_s = record.change, record.change.samples[-1].time_s
    return {
        "job": record.job,
        "rate": change.new_rate,
        "old_rate": change.old_rate,
        "plan_version": record.plan_version,
        "change": record.key,
        "evidence": {
            "origin": record.origin,
            "band": [change.low, change.high],
            "samples": [{"seconds_ago": last_s - s.time_s, "rate": s.rate} for s in change.samples],
            "reported_at": record.reported_at.isoformat(),
        },
    }
