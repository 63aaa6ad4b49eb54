"""How far the operator is with a change of a `FlinkDeployment`: a decision from what the resource reports."""

from dataclasses import dataclass
from typing import Literal

from flink_client.kubernetes.resource import DEPLOYED, FAILED, STABLE, FlinkDeployment

_ENDED = frozenset({"FAILED", "CANCELED", "FINISHED", "SUSPENDED"})


@dataclass(frozen=True)
class OperatorProgress:
    """`running`: the job runs with the change, but the operator does not call it stable yet."""

    state: Literal["waiting", "running", "stable", "failed", "overtaken"]
    reason: str


def unsettled(resource: FlinkDeployment) -> str | None:
    """What the operator reports while it is at work on the resource; None where it is done."""
    if resource.lifecycle in (STABLE, DEPLOYED) and resource.reconciled_generation == resource.generation:
        return None
    return f"{resource.lifecycle or 'no state'}{'' if resource.error is None else f' ({resource.error})'}"


def progress(resource: FlinkDeployment, generation: int, error_before: str | None) -> OperatorProgress:
    """Compare the resource with what was written.

    Args:
        generation: that the resource has by the change.
        error_before: the operator's error before the change, which it may keep for a while.
    """
    if resource.generation > generation:
        return OperatorProgress("overtaken", f"{resource.reference} was changed again by somebody else meanwhile")
    if resource.error is not None and resource.error != error_before:
        return OperatorProgress("failed", f"the operator reports: {resource.error}")
    if (resource.reconciled_generation or 0) < generation:
        return OperatorProgress("waiting", "the operator has not taken the change up yet")
    job = f"the job is {(resource.job_state or 'in an unknown state').lower()}"
    if resource.lifecycle in FAILED:
        return OperatorProgress("failed", f"the operator reports {resource.lifecycle}, and {job}")
    if resource.job_state in _ENDED and resource.lifecycle in (DEPLOYED, STABLE):
        return OperatorProgress("failed", job)
    if resource.job_state == "RUNNING" and resource.lifecycle == STABLE:
        return OperatorProgress("stable", "the operator reports STABLE, and the job is running")
    if resource.job_state == "RUNNING" and resource.lifecycle == DEPLOYED:
        return OperatorProgress("running", "the operator reports DEPLOYED, and the job is running")
    return OperatorProgress("waiting", f"the operator reports {resource.lifecycle or 'no state'}, and {job}")
