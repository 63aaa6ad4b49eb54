"""One decision of a policy within limits: what the autopilot and the arena share.

rates -> the policy's recommendation -> limits on when -> limits on how many -> tasks to deploy, or none
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from models.scaling.control.guard import Hold
from models.scaling.limits import Granted
from models.scaling.policy import Facts, Policy, Recommendation

UNCHANGED_MEMORY: Final = (
    "only the managed memory of tasks would change, and Flink gives each slot an equal share of what its TaskManager started "
    "with; change the TaskManagers' memory, or use a policy that scales tasks alone"
)


@dataclass(frozen=True)
class RunningTasks:
    """What is deployed now."""

    parallelism: Mapping[str, int]
    memory_mb: Mapping[str, float] | None
    """Managed memory of a task, MiB, where it is known; None if it cannot be changed."""


@dataclass(frozen=True)
class ControlStep:
    """What a policy recommends, and what limits leave of it."""

    advice: Recommendation
    held: Hold | None = None
    """Why the recommendation is not followed now."""
    granted: Granted | None = None
    """Tasks of every operator to deploy; None: nothing is done."""
    memory_mb: Mapping[str, float] = field(default_factory=dict)
    """Managed memory of a task of each operator then, MiB."""


def decide(
    policy: Policy,
    facts: Facts,
    running: RunningTasks,
    holds: Callable[[], Hold | None],
    grant: Callable[[Mapping[str, int], Mapping[str, int]], Granted],
) -> ControlStep:
    """One step.

    Args:
        holds: the limit that forbids a rescale now.
        grant: the tasks that operators get of those wanted, given those that run.

    Raises:
        InvalidInput: the rates lack a metric that the policy decides by.
        Infeasible: what runs exceeds the limits already.
    """
    advice = policy.observe(facts)
    if advice.deploy is None:
        return ControlStep(advice)
    if (held := holds()) is not None:
        return ControlStep(advice, held)
    granted = grant(advice.deploy.parallelism, running.parallelism)
    memory = {} if running.memory_mb is None else {**running.memory_mb, **advice.deploy.memory_mb}
    if granted.parallelism == dict(running.parallelism) and memory == dict(running.memory_mb or {}):
        if running.memory_mb is None and advice.deploy.parallelism == dict(running.parallelism):
            return ControlStep(advice, Hold("memory", UNCHANGED_MEMORY))
        return ControlStep(advice, Hold("bounds", granted.note or "the job runs with these tasks already"))
    return ControlStep(advice, None, granted, memory)
