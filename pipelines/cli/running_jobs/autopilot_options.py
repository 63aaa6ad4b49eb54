"""What the options of `sluice autopilot` ask for."""

from pathlib import Path
from typing import TYPE_CHECKING

from models.errors import InvalidInput
from pipelines.cli.options.settings import policy_settings

if TYPE_CHECKING:
    from models.scaling.control.limits import ControlLimits
    from pipelines.control.request import AutopilotRequest, DeploymentTarget


def autopilot_request(
    job: str,
    name: str | None,
    url: str,
    policy: str,
    settings: list[str] | None,
    limits: "ControlLimits",
    dry_run: bool,
    timeout_s: float,
    program: Path | None,
    deployment: "DeploymentTarget | None",
) -> "AutopilotRequest":
    from flink_client.jobs.restart import RestartProgram
    from pipelines.control.request import AutopilotRequest
    from pipelines.inputs.parsing.files import read_as
    from pipelines.observe.job_file import safe_name

    if name is not None and safe_name(name) != name:
        raise InvalidInput(f"--as must be letters, digits and . _ -, at most 60 of them, but got {name!r:.80}")
    return AutopilotRequest(
        job=name or safe_name(job),
        flink_url=url,
        flink_name=job,
        policy=policy,
        settings=policy_settings(settings or []),
        limits=limits,
        dry_run=dry_run,
        timeout_s=timeout_s,
        program=None if program is None else read_as(program, RestartProgram),
        deployment=deployment,
    )


def deployment_target(
    kubernetes: str | None, context: str | None, through: str, program: Path | None
) -> "DeploymentTarget | None":
    """Raises InvalidInput: options contradict each other, or have another form."""
    from flink_client.kubernetes.reference import parse_reference
    from pipelines.control.request import DeploymentTarget

    if through not in ("operator", "rest"):
        raise InvalidInput(f"--through must be operator or rest, but got {through!r:.80}")
    if kubernetes is None:
        if context is not None or through != "operator":
            raise InvalidInput(
                "--context and --through are for a FlinkDeployment; name it: --kubernetes NAMESPACE/NAME"
            )
        return None
    if program is not None:
        raise InvalidInput("--program is for jobs without --kubernetes, whose operator restarts a job; leave it away")
    parse_reference(kubernetes)
    return DeploymentTarget(kubernetes, context, "rest" if through == "rest" else "operator")


def control_limits(given: list[str] | None, freeze: list[str] | None) -> "ControlLimits":
    """Raises InvalidInput: there is no such limit, or its value is out of range."""
    from models.scaling.control.limits import ControlLimits
    from pipelines.inputs.parsing.files import validate_as

    windows = [dict(zip(("begin", "end"), text.split("-", 1), strict=False)) for text in freeze or []]
    return validate_as(
        {**policy_settings(given or [], "--limit"), "freeze": windows}, ControlLimits, origin="the limits"
    )
