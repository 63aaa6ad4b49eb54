"""An autopilot takes a running job to given tasks, once: its policy decides nothing, so that only the rescale is compared."""

import tempfile
import threading
from collections.abc import Mapping
from typing import Final

from pydantic import Field

from flink_client.rest.client import FlinkRest
from flink_client.rest.waiting import TimedOut, wait_for
from models.errors import SluiceError
from models.scaling.control.limits import ControlLimits
from models.scaling.decisions.change import runs_already
from models.scaling.policies import POLICIES, Knob, PolicyKind
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import Rates
from models.schema import Format
from pipelines.control.autopilot import Autopilot
from pipelines.control.record import AutopilotDecision, RescaleTaken
from pipelines.control.request import AutopilotRequest
from pipelines.control.running import fly
from pipelines.store.workspace import Workspace

INTERVAL_S: Final = 10.0
LIMITS: Final = ControlLimits(settle_s=8.0, least_between_s=0.0, respect_s=0.0)
PATIENCE_S: Final = 180.0


class GivenTasksSettings(Format):
    """Settings of the policy `given-tasks`."""

    tasks: str = Field(description="NAME=TASKS,...: tasks of the operators whose names contain these.")
    interval_s: float = Field(INTERVAL_S, description="Time over which rates are measured, seconds.")


class GivenTasks:
    """The policy `given-tasks`."""

    name = "given-tasks"

    def __init__(self, settings: GivenTasksSettings) -> None:
        self.interval_s = settings.interval_s
        self._tasks = {name: int(tasks) for name, tasks in (one.split("=") for one in settings.tasks.split(","))}

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
    request = AutopilotRequest(
        "burning",
        rest.url,
        job,
        GivenTasks.name,
        {"tasks": ",".join(f"{name}={n}" for name, n in tasks.items())},
        LIMITS,
    )
    stored: list[AutopilotDecision] = []
    stop = threading.Event()

    def rescale() -> RescaleTaken | None:
        return next((d.rescale for d in stored if d.done == "rescaled"), None)

    with tempfile.TemporaryDirectory() as folder, FlinkRest(rest.url, timeout_s=10.0, patience_s=0.0) as own:
        pilot = Autopilot(Workspace(folder), request, own)
        thread = threading.Thread(target=fly, args=(pilot, stored.append, stop), daemon=True)
        thread.start()
        try:
            return wait_for(rescale, PATIENCE_S, "a rescale by the autopilot", pause_s=0.2)
        except TimedOut as error:
            said = "; ".join(dict.fromkeys(d.reason for d in stored))
            raise SluiceError(f"{error}; the autopilot says: {said or 'nothing'}") from error
        finally:
            stop.set()
            thread.join(30.0)
