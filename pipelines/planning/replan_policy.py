"""The scaling policy of a replan: the requested one, else the one that an evaluation chose for the job, else DS2."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from models.errors import InvalidInput
from models.planning.budget import Sizing
from models.planning.inputs import PlanningInputs
from models.planning.parallelism import Scaling, scale
from models.scaling.policies import POLICIES
from pipelines.planning.sizing import sized
from pipelines.run import PipelineRun
from pipelines.store.workspace import Damaged, Workspace

DEFAULT_POLICY: Final = "ds2"
_CHOICES: Final = "policies"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReplanPolicy:
    """A scaling policy, and why it was chosen."""

    name: str
    reason: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    choice: str | None = None
    """Workspace key of the evaluation's choice, if it is the reason."""


def policy_for(workspace: Workspace, job: str, named: str | None = None) -> ReplanPolicy:
    """The policy for a job's replans.

    Args:
        named: the requested policy, which takes precedence over any choice.
    """
    if named is not None:
        return ReplanPolicy(named, f"scaled by {_title(named)}, as requested")
    if not workspace.list(f"{_CHOICES}/{job}"):
        return ReplanPolicy(DEFAULT_POLICY, f"scaled by {_title(DEFAULT_POLICY)}, since no evaluation chose a policy")
    from pipelines.arena.choice import choice_key, latest_choice  # imports the arena, which replans do without

    try:
        choice = latest_choice(workspace, job)
    except (Damaged, InvalidInput) as error:
        _logger.warning("%s; %s is used instead", error, DEFAULT_POLICY)
        return ReplanPolicy(
            DEFAULT_POLICY, f"scaled by {_title(DEFAULT_POLICY)}, since the evaluation's choice cannot be read"
        )
    return ReplanPolicy(
        choice.policy,
        f"scaled by {_title(choice.policy)}, the evaluation's choice {choice.version} for the job: {choice.reason}",
        choice.settings,
        choice_key(job, choice.version),
    )


def scaled_for_replan(
    known: PlanningInputs, run: PipelineRun, rate: float, named: str | None = None
) -> tuple[Sizing, Scaling, ReplanPolicy]:
    """Size and scale a job for a rate as a replan does.

    A choice that needs metrics other than rates (CPU, lag) cannot be followed, so DS2 decides.

    Args:
        rate: target, records/s at the sources together.
        named: the requested policy.

    Raises:
        InvalidInput: the policy is unknown, or needs metrics that a rate alone does not give.
        Infeasible: no memory size reaches the rate, or none fits the cluster.
    """
    sizing = sized(known, run, rate)
    policy = policy_for(run.workspace, run.job.name, named)
    try:
        return sizing, _scaled(known, sizing, rate, policy), policy
    except InvalidInput as error:
        if policy.choice is None:
            raise
        instead = ReplanPolicy(
            DEFAULT_POLICY,
            f"scaled by {_title(DEFAULT_POLICY)}, since the evaluation's choice {policy.choice} cannot decide here: {error}",
        )
    return sizing, _scaled(known, sizing, rate, instead), instead


def _scaled(known: PlanningInputs, sizing: Sizing, rate: float, policy: ReplanPolicy) -> Scaling:
    return scale(known.operators, sizing, rate, policy.name, policy.settings)


def _title(policy: str) -> str:
    return POLICIES[policy].title if policy in POLICIES else policy
