"""The policy that an evaluation chooses for a job, stored permanently as policies/<job>/v000001.json, ...

The rule, over all workloads of the job: the policies whose p95 latency is within the bound in the most workloads; of
them, the one with the fewest task-hours in all workloads together. If none is within the bound in any workload, the one
whose worst p95 is the lowest.
"""

import math
import re
from collections.abc import Sequence
from typing import Final, Literal

from pydantic import Field, JsonValue

from models.errors import InvalidInput
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, Positive, PositiveInt
from pipelines.arena.evaluation import Evaluation
from pipelines.arena.log import evaluation_digest
from pipelines.arena.ranking import Ranking, Standing
from pipelines.arena.request import EvaluationRequest
from pipelines.store.workspace import Workspace, to_json

FOLDER: Final = "policies"
_FILE: Final = re.compile(r"v(\d{6,})\.json")


class WorkloadWinner(Format):
    """Which policy served a workload best."""

    workload: str = Field(description="A pattern, or the name of a file of rates.")
    policy: Name = Field(description="The policy that served it best.")
    reason: str = Field(description="Why, in words.")


class PolicyTotal(Format):
    """How a policy did on all workloads of the job together."""

    policy: Name = Field(description="Name of the policy.")
    workloads_within: int = Field(ge=0, description="Workloads in which its p95 latency is within the bound.")
    worst_latency_p95_s: NonNegative | None = Field(description="Highest p95 latency of a workload, seconds.")
    task_hours: NonNegative = Field(description="Tasks of all operators over time, all workloads, task-hours.")
    memory_gib_hours: NonNegative = Field(description="Memory of all tasks over time, all workloads, GiB-hours.")


class PolicyChoice(Format):
    """The file of one version: the policy chosen for a job, and why."""

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    job: Name = Field(description="Name of the job.")
    version: PositiveInt = Field(description="Counts the choices made for the job, from 1 on.")
    created_at: str = Field(description="When it was chosen, ISO 8601, UTC.")
    policy: Name = Field(description="The policy chosen for the job.")
    settings: dict[str, JsonValue] = Field(
        description="Its settings in the replays and in use, as far as they differ from its defaults."
    )
    reason: str = Field(description="Why it was chosen, in words.")
    latency_bound_s: Positive = Field(description="Bound on the p95 latency, seconds.")
    winners: tuple[WorkloadWinner, ...] = Field(description="The policy that served each workload best.")
    totals: tuple[PolicyTotal, ...] = Field(description="All policies over all workloads, the best first.")
    cluster: str = Field(description="Cluster that the replays ran on.")
    seed: int = Field(ge=0, description="First seed.")
    seeds: PositiveInt = Field(description="Number of seeds; figures are medians over them.")
    evaluation: str = Field(description="Digest of the evaluation: its replays, the code and the bound.")
    results: str = Field(description="Key of the table of all replays in the workspace.")


def choose(
    request: EvaluationRequest, evaluation: Evaluation, job: str, workspace: Workspace, created_at: str
) -> PolicyChoice:
    """Store the choice for a job as its newest version; the same evaluation makes no second version.

    Args:
        job: name of a job of the evaluation.
        created_at: ISO 8601, UTC.
    """
    rankings = [ranking for ranking in evaluation.rankings if ranking.winner.job == job]
    totals = sorted((_total(policy, rankings) for policy in request.policies), key=_order)
    best = totals[0]
    made_by = evaluation_digest(request, evaluation)
    while True:
        before = _versions(workspace, job)
        newest = latest_choice(workspace, job) if before else None
        if newest is not None and newest.evaluation == made_by:
            return newest
        choice = PolicyChoice(
            job=job,
            version=max(before, default=0) + 1,
            created_at=created_at,
            policy=best.policy,
            settings=request.settings_of(best.policy),
            reason=_reason(totals, len(rankings), request.latency_bound_s),
            latency_bound_s=request.latency_bound_s,
            winners=tuple(_winner(ranking) for ranking in rankings),
            totals=tuple(totals),
            cluster=request.cluster,
            seed=request.seed,
            seeds=request.seeds,
            evaluation=made_by,
            results=evaluation.results_key,
        )
        try:
            workspace.create_bytes(choice_key(job, choice.version), to_json(choice))
        except FileExistsError:
            continue  # another writer took that version
        return choice


def latest_choice(workspace: Workspace, job: str) -> PolicyChoice:
    """The newest choice for a job.

    Raises:
        InvalidInput: no policy was chosen for it yet.
        Damaged: its file is damaged.
    """
    versions = _versions(workspace, job)
    if not versions:
        raise InvalidInput(
            f"no scaling policy was chosen for the job {job!r} in {workspace.url} yet; run the DAG `evaluate_policies` for it"
        )
    return workspace.read(choice_key(job, versions[-1]), PolicyChoice)


def choice_key(job: str, version: int) -> str:
    """Workspace key of one version."""
    return f"{FOLDER}/{job}/v{version:06d}.json"


def _versions(workspace: Workspace, job: str) -> list[int]:
    matches = (_FILE.fullmatch(key.rpartition("/")[2]) for key in workspace.list(f"{FOLDER}/{job}"))
    return sorted(int(match[1]) for match in matches if match)


def _total(policy: str, rankings: Sequence[Ranking]) -> PolicyTotal:
    own: list[Standing] = [s for ranking in rankings for s in ranking.standings if s.policy == policy]
    return PolicyTotal(
        policy=policy,
        workloads_within=sum(s.within_bound for s in own),
        worst_latency_p95_s=max((s.latency_p95_s for s in own if s.latency_p95_s is not None), default=None),
        task_hours=math.fsum(s.task_hours for s in own),
        memory_gib_hours=math.fsum(s.memory_gib_hours for s in own),
    )


def _order(total: PolicyTotal) -> tuple[int, float, float]:
    latency = total.worst_latency_p95_s or 0.0
    costs = (total.task_hours, latency) if total.workloads_within else (latency, total.task_hours)
    return (-total.workloads_within, *costs)


def _reason(totals: Sequence[PolicyTotal], workloads: int, bound_s: float) -> str:
    best = totals[0]
    equal = sum(total.workloads_within == best.workloads_within for total in totals)
    of = "its one workload" if workloads == 1 else f"{best.workloads_within} of {workloads} workloads"
    if not best.workloads_within:
        latency = best.worst_latency_p95_s or 0.0
        return f"no policy keeps the p95 latency within {bound_s:g} s; {best.policy} has the lowest worst one, {latency:,.1f} s"
    kept = f"{best.policy} keeps the p95 latency within {bound_s:g} s in {of}"
    if equal == 1:
        return f"{kept}, and no other policy in as many"
    return f"{kept}, and takes the fewest task-hours of the {equal} that do ({best.task_hours:,.1f})"


def _winner(ranking: Ranking) -> WorkloadWinner:
    return WorkloadWinner(workload=ranking.winner.workload, policy=ranking.winner.policy, reason=ranking.reason)
