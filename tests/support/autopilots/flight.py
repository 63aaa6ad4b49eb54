"""Autopilots of a simulated job, whose time passes as a test lets it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from flink.steered import SimulatedClock, SteeredFlink, SteeredJob
from flink_client.metrics.partitions import LogEnds
from flink_client.rest.client import FlinkRest
from models.scaling.control.limits import ControlLimits
from pipelines.control.actions.deployment import OpenApi, open_api
from pipelines.control.autopilot import Autopilot
from pipelines.control.record import AutopilotDecision
from pipelines.control.request import AutopilotRequest, DeploymentTarget
from pipelines.store.workspace import Workspace

BEGIN = datetime(2026, 11, 24, 12, tzinfo=UTC)
DS2: dict[str, Any] = {"policy_interval_s": 10.0, "warm_up_intervals": 0}
ACTIONS = {"rescaled", "refused", "failed", "rolled-back"}


def actions(stored: list[AutopilotDecision]) -> list[tuple[str, int, int]]:
    """What was done, with the counting tasks before and after."""
    taken = [(d.done, d.rescale) for d in stored if d.done in ACTIONS]
    return [(done, r.before["count"], r.after["count"]) for done, r in taken if r is not None]


def held(stored: list[AutopilotDecision]) -> set[str | None]:
    """The limits and guards that held something back."""
    return {d.held for d in stored} - {None}


def step_up(t: float) -> float:
    """1,000 records/s, which 3 counting tasks of 400 take; 2,600 from the first minute on, which 7 take."""
    return 1000.0 if t < 60 else 2600.0


@dataclass
class Flight:
    """A simulated job, and autopilots for it."""

    clock: SimulatedClock
    job: SteeredJob
    flink: SteeredFlink
    workspace: Workspace
    rests: list[FlinkRest] = field(default_factory=list)

    def now(self) -> datetime:
        return BEGIN + timedelta(seconds=self.clock() - 1000.0)

    def autopilot(
        self, *, policy: str = "ds2", settings: dict[str, Any] | None = None, dry_run: bool = False, timeout_s: float = 20.0,
        holder: str = "", sleep: Callable[[float], None] | None = None, log_ends: LogEnds | None = None,
        deployment: DeploymentTarget | None = None, connect: OpenApi = open_api, **limits: Any,
    ) -> Autopilot:  # fmt: skip
        request = AutopilotRequest(
            job="clicks",
            flink_url=self.flink.url,
            flink_name="clicks",
            policy=policy,
            settings=DS2 if settings is None and policy == "ds2" else settings or {},
            limits=ControlLimits(**{"settle_s": 5.0, "least_between_s": 30.0, **limits}),
            dry_run=dry_run,
            timeout_s=timeout_s,
            deployment=deployment,
        )
        rest = FlinkRest(self.flink.url, timeout_s=0.5, patience_s=0.0)
        self.rests.append(rest)
        return Autopilot(
            self.workspace,
            request,
            rest,
            clock=self.clock,
            sleep=sleep or self.clock.sleep,
            now=self.now,
            holder=holder,
            log_ends=log_ends,
            connect=connect,
        )

    def fly(self, autopilot: Autopilot, seconds: float) -> list[AutopilotDecision]:
        """Run its loop for so long; returns what was stored."""
        stored, until = [], self.clock() + seconds
        while self.clock() < until:
            autopilot.ask()
            if (decision := autopilot.round()) is not None:
                stored.append(decision)
            self.clock.sleep(autopilot.every_s)
        return stored
