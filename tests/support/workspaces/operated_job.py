"""Word count as a job that is operated: its file, the request of the run that planned it, and plans of it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from flink.server import word_count_plan
from models.plan.content import Plan
from pipelines.inputs.plan_request import PlanRequest
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

JOB = "wordcount"
ROOT = Path(__file__).parents[3]


class OperatedJob:
    """Its file says what `operate` was given last."""

    def __init__(self, folder: Path, workspace: Workspace) -> None:
        self.workspace, self.file = workspace, folder / f"{JOB}.yaml"
        self._document = yaml.safe_load((ROOT / "jobs" / f"{JOB}.yaml").read_text())
        workspace.write(f"runs/{JOB}/test/request.json", PlanRequest(job=str(self.file), rate=1500.0))
        self.operate(None)

    def call_in_flink(self, names: Mapping[str, str]) -> None:
        """State the names that Flink has for operators."""
        for operator in self._document["operators"]:
            if operator["name"] in names:
                operator["flink_name"] = names[operator["name"]]

    def operate(self, operations: Mapping[str, Any] | None) -> None:
        self.file.write_text(yaml.safe_dump(self._document | {"operations": operations}))

    def apply(self, **applying: Any) -> None:
        """Allow its plans to be applied."""
        self.operate({"apply": {"observe_s": 0, "timeout_s": 2, **applying}})

    def publish(self, tasks: int, rate: float = 1500.0) -> Plan:
        """A plan with one task of the source and `tasks` of each other operator."""
        placement = {"tm1": {"source": 1, "flatmap": tasks, "count": tasks}}
        return PlanStore(self.workspace).publish(word_count_plan(placement, rate=rate), "2026-01-01T00:00:00+00:00")
