"""What an autopilot is asked to do."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from flink_client.jobs.restart import RestartProgram
from models.scaling.control.limits import ControlLimits

Through = Literal["operator", "rest"]
"""How a job that has a FlinkDeployment is rescaled.

operator   the tasks are written into the resource, and the operator rescales the job
rest       Flink is asked to, and the tasks are written into the resource once they run, so that the operator keeps them
"""


@dataclass(frozen=True)
class DeploymentTarget:
    """The FlinkDeployment that deploys the job."""

    reference: str
    """NAMESPACE/NAME."""
    context: str | None = None
    """Of the kubeconfig, or connection:NAME; None: the current one or, without a kubeconfig, the pod's service account."""
    through: Through = "operator"


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
    deployment: DeploymentTarget | None = None
    """None: the job is rescaled through Flink alone."""


@dataclass(frozen=True)
class Clocks:
    """The time that an autopilot goes by."""

    monotonic: Callable[[], float]
    """Seconds."""
    sleep: Callable[[float], None]
    now: Callable[[], Any]
    """The time of day, an aware datetime."""
