"""Word count with a calendar: 1,000 records/s in 5 slots, and on Black Friday 3,000 in 13."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from flink.server import word_count_plan
from pipelines.calendar.costs import SizedRate
from pipelines.calendar.follow import CalendarFollower
from pipelines.calendar.record import CalendarChange
from pipelines.pages.calendar.detail import CalendarSchedule, calendar_detail
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB, OperatedJob

BLACK_FRIDAY = {"name": "Black Friday", "start": "2026-11-27T08:00", "end": "2026-11-28T00:00", "factor": 3}
CALENDAR: dict[str, Any] = {
    "time_zone": "Europe/Berlin",
    "base_rate": 1000.0,
    "rescale_s": 240.0,
    "events": [BLACK_FRIDAY],
}
TASKS = {1000.0: 2, 3000.0: 6}
"""Rate -> tasks of each operator but the source, which has one."""


def sizes(workspace: Workspace, job: str, rates: Sequence[float]) -> Mapping[float, SizedRate]:
    """What the model would say: the slots that the plans below have."""
    return {rate: SizedRate(1 + 2 * TASKS[rate], None) for rate in rates}


class CalendarJob(OperatedJob):
    """Is followed, replanned and looked at, at times in UTC such as `2026-11-27T06:45`."""

    def state(self, **changes: Any) -> None:
        """Write the calendar, with some changes."""
        self.operate({"calendar": CALENDAR | changes})

    def follow(self, at: str) -> CalendarChange | None:
        """Poll as the triggerer does."""
        return CalendarFollower(self.workspace, JOB, now=lambda: datetime.fromisoformat(f"{at}+00:00")).poll()

    def replan(self, change: CalendarChange, at: str) -> int:
        """Publish the version for a change, as the DAG does."""
        return self.publish_at(at, TASKS[change.scheduled.rate], change.scheduled.rate, change.cause)

    def publish_at(self, at: str, tasks: int, rate: float, *reasons: str) -> int:
        """Publish a version, for some other cause."""
        placement = {"tm1": {"source": 1, "flatmap": tasks, "count": tasks}}
        content = word_count_plan(placement, rate=rate)
        caused = content.model_copy(update={"reasons": (*reasons, *content.reasons)})
        return PlanStore(self.workspace).publish(caused, f"{at}:00+00:00").version

    def look(self, at: str) -> CalendarSchedule:
        """The schedule on its page."""
        detail = calendar_detail(self.workspace, JOB, datetime.fromisoformat(f"{at}+00:00"), sizes)
        assert detail.schedule is not None and detail.faults == (), detail
        return detail.schedule


@pytest.fixture
def job(tmp_path: Path) -> CalendarJob:
    """Planned for 1,000 records/s long ago."""
    made = CalendarJob(tmp_path, Workspace(tmp_path / "workspace"))
    made.state()
    made.publish(2, rate=1000.0)
    return made
