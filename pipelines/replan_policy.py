"""Which scaling policy says how many tasks a replan gives each operator: the one named, else the one that an evaluation
chose for the job, else DS2."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from models.errors import InvalidInput
from models.scaling.policies import POLICIES
from pipelines.knowledge import Knowledge
from pipelines.run import PipelineRun
from pipelines.scaling import Scaling, scale
from pipelines.workspace import Damaged, Workspace

DEFAULT_POLICY: Final = "ds2"
_CHOICES: Final = "policies"
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ReplanPolicy:
    """A policy, and how it came to be the one."""

    name: str
    reason: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    choice: str | None = None
    """Workspace key of the evaluation's choice, where that named it."""


def policy_for(workspace: Workspace, job: str, named: str | None = None) -> ReplanPolicy:
    """The policy for a job's replans.

    Args:
        named: by whoever asks for the replan; then nothing else counts.
    """
    if named is not None:
        return ReplanPolicy(named, f"scaled by {_title(named)}, as asked for")
    if not workspace.list(f"{_CHOICES}/{job}"):
        return ReplanPolicy(DEFAULT_POLICY, f"scaled by {_title(DEFAULT_POLICY)}, since no evaluation chose a policy")
    from pipelines.evaluation.choice import choice_key, latest_choice  # imports the arena, which replans do without

    try:
        choice = latest_choice(workspace, job)
    except (Damaged, InvalidInput) as error:
        _logger.warning("%s; %s scales instead", error, DEFAULT_POLICY)
        return ReplanPolicy(
            DEFAULT_POLICY, f"scaled by {_title(DEFAULT_POLICY)}, since the evaluation's choice cannot be read"
        )
    return ReplanPolicy(
        choice.policy,
        f"scaled by {_title(choice.policy)}, the evaluation's choice {choice.version} for the job: {choice.reason}",
        choice.settings,
        choice_key(job, choice.version),
    )


def scaled(
    knowledge: Knowledge, run: PipelineRun, rate: float, named: str | None = None
) -> tuple[Scaling, ReplanPolicy]:
    """Scale a job to a rate as a replan does.

    A choice that decides by what a rate alone does not tell (CPU, lag) cannot be followed, so DS2 decides.

    Raises:
        InvalidInput: no policy has the name, or it decides by what a rate alone does not tell.
        Infeasible: no memory size reaches the rate, or none fits the cluster.
    """
    policy = policy_for(run.workspace, run.job.name, named)
    try:
        return _scaled(knowledge, run, rate, policy), policy
    except InvalidInput as error:
        if policy.choice is None:
            raise
        instead = ReplanPolicy(
            DEFAULT_POLICY,
            f"scaled by {_title(DEFAULT_POLICY)}, since the evaluation's choice {policy.choice} cannot decide here: {error}",
        )
    return _scaled(knowledge, run, rate, instead), instead


def _scaled(knowledge: Knowledge, run: PipelineRun, rate: float, policy: ReplanPolicy) -> Scaling:
    request = run.request
    return scale(knowledge, run.cluster, rate, request.headroom, request.memory_mb, policy.name, policy.settings)


def _title(policy: str) -> str:
    return POLICIES[policy].title if policy in POLICIES else policy
