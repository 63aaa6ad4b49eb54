"""Word count on a real Flink, under an autopilot that runs in a thread."""

import threading
import time
from collections.abc import Callable

from autopilots.flight import ACTIONS
from flink_client.rest.client import FlinkRest
from models.job import Job
from models.scaling.control.limits import ControlLimits
from pipelines.control.autopilot import Autopilot
from pipelines.control.record import AutopilotDecision
from pipelines.control.request import AutopilotRequest
from pipelines.control.running import fly
from pipelines.store.workspace import Workspace
from testbeds.feeding.control import SourceControl
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.programs.stated_costs import Payment, dataflow_program

RATE = 700.0
"""Sentences/s: 84 % of what a task of Count takes, 1 M words a minute at 20 words a sentence."""
LIMITS = ControlLimits(settle_s=3.0, least_between_s=20.0, stale_after_s=20.0, back_off_s=60.0)
RESTARTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "1 s",
}


class Flown:
    """Word count under an autopilot that runs in a thread."""

    def __init__(self, cluster: LocalCluster, control: SourceControl, job: Job, workspace: Workspace) -> None:
        self.cluster, self.control, self.workspace = cluster, control, workspace
        tasks = {"source": 1, "flatmap": 1, "count": 1}
        program = dataflow_program(job, tasks, control.address, RESTARTS, payment=Payment.PACED)
        self.id = cluster.rest.run(cluster.uploaded(cluster.kit), program)
        cluster.rest.wait_until_running(self.id, 120.0)
        self.stored: list[AutopilotDecision] = []
        self.failure: BaseException | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._fly, daemon=True)
        self._thread.start()

    def _fly(self) -> None:
        request = AutopilotRequest(
            "wordcount",
            self.cluster.rest.url,
            self.id,
            "ds2",
            {"policy_interval_s": 5.0, "warm_up_intervals": 0},
            LIMITS,
        )
        with FlinkRest(request.flink_url, timeout_s=5.0, patience_s=0.0) as rest:
            try:
                fly(Autopilot(self.workspace, request, rest), self.stored.append, self._stop)
            except BaseException as error:
                self.failure = error

    def counting(self) -> int:
        """Tasks of Count that run."""
        return next(v.running for v in self.cluster.rest.job(self.id).vertices if v.name == "count")

    def until(self, holds: Callable[[], bool], seconds: float) -> float:
        began = time.monotonic()
        while not holds():
            assert time.monotonic() < began + seconds, [(d.done, d.held, d.reason) for d in self.stored]
            assert self.failure is None, self.failure
            time.sleep(0.2)
        return time.monotonic() - began

    def held(self, limit: str, after: int) -> list[str]:
        """Why decisions after the one with this number were held back by a limit."""
        return [d.reason for d in self.stored if d.held == limit and d.number > after]

    @property
    def actions(self) -> list[AutopilotDecision]:
        return [d for d in self.stored if d.done in ACTIONS]

    def end(self) -> None:
        self._stop.set()
        self._thread.join(30.0)
