"""A workspace with a plan of a job whose file asks for its rate to be followed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from models.plan.content import Plan
from pipelines.inputs.plan_request import PlanRequest
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace


class Followed:
    """The job, its file and its plans; 1000 records/s are planned for at first."""

    def __init__(self, folder: Path, root: Path, job: str = "wordcount", workspace: Workspace | None = None) -> None:
        self.workspace = workspace or Workspace(folder / "workspace")
        self.job, self.file = job, folder / f"{job}.yaml"
        self._document = yaml.safe_load((root / "jobs" / f"{job}.yaml").read_text()) | {"sql": None}
        self._plan = Plan.model_validate_json(next((root / "tests/data/plans").glob("*.json")).read_text())
        self.workspace.write(f"runs/{job}/r/request.json", PlanRequest(job=str(self.file), rate=1000.0))
        self.say(url="http://127.0.0.1:1")
        self.plan(1000.0)

    def say(self, url: str, **replan: Any) -> None:
        """Write the file of the job, with rules for replanning."""
        rates = {"prometheus": {"url": url, "query": "q"}, "timeout_s": 1.0}
        small = {"polls": 2, "poll_interval_s": 1.0, "cool_down_s": 0.0}
        self.write({"replan": {"rates": rates, **small, **replan}})

    def write(self, operations: dict[str, Any] | None) -> None:
        self.file.write_text(yaml.safe_dump(self._document | {"operations": operations}))

    def plan(self, rate: float) -> Plan:
        """Another version."""

        def make(version: int, _before: Plan | None) -> Plan:
            lineage = self._plan.lineage.model_copy(update={"run": "r"})
            changes = {"job": self.job, "version": version, "target_rate": rate, "lineage": lineage}
            return self._plan.model_copy(update=changes)

        return PlanStore(self.workspace).append(self.job, make)


@pytest.fixture
def followed(tmp_path: Path, root: Path) -> Followed:
    return Followed(tmp_path, root)


class Clocks:
    """Seconds and the time of day, both moved by hand."""

    def __init__(self) -> None:
        self.seconds, self.day = 0.0, datetime(2026, 1, 1, tzinfo=UTC)

    def clock(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return self.day


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()
