"""Triggers that start DAG runs."""

from abc import abstractmethod
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseEventTrigger, TriggerEvent


class WorkspaceTrigger(BaseEventTrigger):
    """Follows jobs of the workspace (SLUICE_WORKSPACE), and sends one event for each thing that is found.

    What is found is recorded in the workspace, so a second or restarted trigger neither loses nor repeats it.
    """

    def __init__(self, look_every_s: float = 30.0) -> None:
        """
        Args:
            look_every_s: seconds between two listings of the jobs.
        """
        super().__init__()  # type: ignore[no-untyped-call]
        self.look_every_s = look_every_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"sluice_airflow.triggers.{type(self).__name__}", {"look_every_s": self.look_every_s}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from pipelines.following.threads import in_thread

        # The imports take seconds, in which the triggerer must serve other triggers.
        async for found in await in_thread(self._found, "the imports of the stages"):
            yield TriggerEvent(self.event_of(found))  # type: ignore[no-untyped-call]

    @abstractmethod
    def _found(self) -> Any:
        """An asynchronous iterator of what is found."""

    @staticmethod
    @abstractmethod
    def event_of(found: Any) -> dict[str, Any]:
        """The content of an event."""


class RateChangeTrigger(WorkspaceTrigger):
    """Follows the source rates of all jobs that have a plan and, in their file, rules for replanning: an event for each
    change.
    """

    def _found(self) -> Any:
        from pipelines.rates.watch import rate_change_events
        from pipelines.store.workspace import Workspace

        return rate_change_events(Workspace(), self.look_every_s)

    @staticmethod
    def event_of(found: Any) -> dict[str, Any]:
        return event_of(found)


class CalendarTrigger(WorkspaceTrigger):
    """Follows the calendars of all jobs that have a plan and, in their file, a calendar: an event for each scheduled change."""

    def _found(self) -> Any:
        from pipelines.calendar.follow import calendar_changes
        from pipelines.store.workspace import Workspace

        return calendar_changes(Workspace(), self.look_every_s)

    @staticmethod
    def event_of(found: Any) -> dict[str, Any]:
        return event_of_calendar(found)


class ObservationTrigger(WorkspaceTrigger):
    """Observes all running jobs, those of the catalogue included, whose file says where they run: an event for each window of
    a job whose samples are stored.
    """

    def _found(self) -> Any:
        from pipelines.observe.continuous.following import observed_windows
        from pipelines.store.workspace import Workspace

        return observed_windows(Workspace(), self.look_every_s)

    @staticmethod
    def event_of(found: Any) -> dict[str, Any]:
        return event_of_window(found)


class AutopilotTrigger(WorkspaceTrigger):
    """Runs the autopilots of all jobs whose file asks for one: an event for each rescale that was done or failed, and for each
    autopilot that needs a person's permission to act.
    """

    def _found(self) -> Any:
        from pipelines.piloting.following import pilot_events
        from pipelines.store.workspace import Workspace

        return pilot_events(Workspace(), self.look_every_s)

    @staticmethod
    def event_of(found: Any) -> dict[str, Any]:
        content: dict[str, Any] = found.model_dump(mode="json")
        return content


def event_of_window(window: Any) -> dict[str, Any]:
    """The content of the event of an `ObservedWindow`."""
    finished, seen = window.finished, window.seen
    figures = ("consumed_rate", "arriving_rate", "lag_records", "restarts")
    return {
        **finished.model_dump(mode="json", exclude={"schema_version"}),
        **{name: None if seen is None else getattr(seen, name) for name in figures},
        "bound_by": None if seen is None else seen.bound_by.sentence,
    }


def event_of_calendar(change: Any) -> dict[str, Any]:
    """The content of the event of a `CalendarChange`."""
    return {
        "job": change.job,
        "rate": change.scheduled.rate,
        "old_rate": change.old_rate,
        "plan_version": change.plan_version,
        "change": change.key,
        "evidence": {
            "origin": change.cause,
            "scheduled": change.scheduled.model_dump(mode="json"),
            "reported_at": change.reported_at.isoformat(),
        },
    }


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
