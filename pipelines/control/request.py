"""What an autopilot is asked to do."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flink_client.restart import RestartProgram
from models.scaling.control.limits import ControlLimits


@dataclass(frozen=True)
class AutopilotRequest:
    """One job, its policy, and what the policy may do."""

    job: str
    """Its name in the workspace."""
    flink_url: str
    flink_name: str
    """Flink's name or id of the job."""
    policy: str
    settings: dict[str, Any] = field(default_factory=dict)
    limits: ControlLimits = field(default_factory=ControlLimits)
    dry_run: bool = False
    timeout_s: float = 60.0
    """For a rescale to come about, seconds."""
    program: RestartProgram | None = None
    """How to start the job, where a change takes a restart."""


@dataclass(frozen=True)
class Clocks:
    """The time that an autopilot goes by."""

    monotonic: Callable[[], float]
    """Seconds."""
    sleep: Callable[[float], None]
    now: Callable[[], Any]
    """The time of day, an aware datetime."""
