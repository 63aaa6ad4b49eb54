"""An autopilot takes a running job to given tasks, once: its policy decides nothing, so that only the rescale is compared."""

import tempfile
import threading
from collections.abc import Mapping
from typing import Final

from pydantic import Field

from flink_client.rest.client import FlinkRest
from flink_client.rest.waiting import wait_for
from models.scaling.control.limits import ControlLimits
from models.scaling.decisions.change import runs_already
from models.scaling.policies import POLICIES, Knob, PolicyKind
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import Rates
from models.schema import Format, PositiveInt
from pipelines.control.autopilot import Autopilot
from pipelines.control.record import RescaleTaken
from pipelines.control.request import AutopilotRequest
from pipelines.control.running import fly
from pipelines.store.workspace import Workspace

INTERVAL_S: Final = 10.0
LIMITS: Final = ControlLimits(settle_s=8.0, least_between_s=0.0, respect_s=0.0)
PATIENCE_S: Final = 180.0


class GivenTasksSettings(Format):
    """Settings of the policy `given-tasks`."""

    tasks: dict[str, PositiveInt] = Field(description="Tasks of the operators whose names contain these.")
    interval_s: float = Field(INTERVAL_S, description="Time over which rates are measured, seconds.")


class GivenTasks:
    """The policy `given-tasks`."""

    name = "given-tasks"

    def __init__(self, settings: GivenTasksSettings) -> None:
        self._tasks, self.interval_s = settings.tasks, settings.interval_s

    def decide(self, rates: Rates) -> Decision:
        tasks = {name: next(n for part, n in self._tasks.items() if part in name) for name in rates.operators}
        return Decision(parallelism=tasks, exact={}, memory_mb={}, reasons={})

    def observe(self, facts: Facts) -> Recommendation:
        wanted = self.decide(facts.rates)
        there = runs_already(wanted, facts.rates)
        return Recommendation(None if there else wanted, "These tasks are given.")


def rescaled(rest: FlinkRest, job: str, tasks: Mapping[str, int]) -> RescaleTaken:
    """Let an autopilot rescale the job to these tasks, in place, and end it."""
    POLICIES[GivenTasks.name] = PolicyKind(
        GivenTasks.name, "Given tasks", GivenTasksSettings, GivenTasks, Knob("interval_s", (INTERVAL_S,))
    )
    request = AutopilotRequest("burning", rest.url, job, GivenTasks.name, {"tasks": dict(tasks)}, LIMITS)
    found: list[RescaleTaken] = []
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as folder, FlinkRest(rest.url, timeout_s=10.0, patience_s=0.0) as own:
        pilot = Autopilot(Workspace(folder), request, own)
        thread = threading.Thread(
            target=fly,
            args=(pilot, lambda d: found.append(d.rescale) if d.done == "rescaled" and d.rescale else None, stop),
            daemon=True,
        )
        thread.start()
        try:
            return wait_for(lambda: found[0] if found else None, PATIENCE_S, "a rescale by the autopilot", pause_s=0.2)
        finally:
            stop.set()
            thread.join(30.0)
