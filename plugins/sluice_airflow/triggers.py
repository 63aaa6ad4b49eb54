"""What starts DAGs by itself."""

from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent


class RateChangeTrigger(BaseEventTrigger):
    """Follows the source rates of all jobs of the workspace (SLUICE_WORKSPACE) that have a plan and, in their file, rules
    for replanning; an event for each change, never two for one.

    The triggerer may run it twice or start it anew: what was told is in the workspace.

    Args:
        look_every_s: after so many seconds it is looked again which jobs there are.
    """

    def __init__(self, look_every_s: float = 30.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.look_every_s = look_every_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "sluice_airflow.triggers.RateChangeTrigger", {"look_every_s": self.look_every_s}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from pipelines.rates.threads import in_thread

        async for told in await in_thread(self._changes, "the imports of the stages"):
            yield TriggerEvent(event_of(told))  # type: ignore[no-untyped-call]

    def _changes(self) -> Any:
        # Imported in the thread: pyarrow and the others take seconds, in which the triggerer has other work.
        from pipelines.rates.watch import told_changes
        from pipelines.workspace import Workspace

        return told_changes(Workspace(), self.look_every_s)


def event_of(told: Any) -> dict[str, Any]:
    """What the event of a change carries: a `ToldChange` as JSON."""
    change, last_s = told.change, told.change.samples[-1].time_s
    return {
        "job": told.job,
        "rate": change.new_rate,
        "old_rate": change.old_rate,
        "plan_version": told.plan_version,
        "change": told.key,
        "evidence": {
            "origin": told.origin,
            "band": [change.low, change.high],
            "samples": [{"seconds_ago": last_s - s.time_s, "rate": s.rate} for s in change.samples],
            "told_at": told.told_at.isoformat(),
        },
    }
