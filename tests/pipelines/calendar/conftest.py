"""A workspace with a plan of a job whose file has a calendar, and a time of day that is moved by hand."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pipelines.store.workspace import Workspace
from workspaces.operated_job import OperatedJob

BLACK_FRIDAY = {"name": "Black Friday", "start": "2026-11-27T08:00", "end": "2026-11-28T00:00", "factor": 3}
CALENDAR = {"time_zone": "Europe/Berlin", "base_rate": 1000.0, "rescale_s": 240.0, "events": [BLACK_FRIDAY]}


class Day:
    """The time of day."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 27, 5, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def at(self, text: str) -> datetime:
        """Move it to a time in UTC, such as `2026-11-27T06:45`."""
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC)
        return self.now


@pytest.fixture
def day() -> Day:
    return Day()


@pytest.fixture
def planned(tmp_path: Path) -> OperatedJob:
    """Word count, planned for 1,000 records/s, with Black Friday in its calendar."""
    job = OperatedJob(tmp_path, Workspace(tmp_path / "workspace"))
    job.operate({"calendar": CALENDAR})
    job.publish(2, rate=1000.0)
    return job


@pytest.fixture
def with_calendar(planned: OperatedJob) -> Callable[..., None]:
    """Writes another calendar."""

    def write(replan: dict[str, Any] | None = None, **changes: Any) -> None:
        operations = {"calendar": CALENDAR | changes}
        planned.operate(operations | ({"replan": replan} if replan else {}))

    return write
