"""The policy that an evaluation chooses for a job, stored permanently as policies/<job>/v000001.json, ...

The policy is the verdict's (`pipelines.arena.scoring.verdict`) over all workloads of the job in the first rescale mode of
the request, the one that the job is rescaled in. Its setting is, of those replayed, the one that holds the attainment in
the most workloads; of them, the one with the fewest task-hours in all workloads together; if none holds it anywhere, the
one with the fewest late records.
"""

import math
import re
from collections.abc import Sequence
from typing import Final, Literal

from pydantic import Field, JsonValue

from models.errors import InvalidInput
from models.scaling.policies import POLICIES
from models.schema import SCHEMA_VERSION, Format, Name, NonNegative, PositiveInt, Ratio
from pipelines.arena.evaluation import Evaluation
from pipelines.arena.log import evaluation_digest
from pipelines.arena.ranking import Ranking, Standing
from pipelines.arena.request import EvaluationRequest, Objective, RescaleMode
from pipelines.arena.scoring.verdict import verdict
from pipelines.store.workspace import Damaged, Workspace, to_json

FOLDER: Final = "policies"
_FILE: Final = re.compile(r"v(\d{6,})\.json")


class WorkloadWinner(Format):
    """Which policy served a workload best."""

    workload: str = Field(description="A pattern, or the name of a file of rates.")
    policy: Name = Field(description="The policy that served it best.")
    reason: str = Field(description="Why, in words.")


class PolicyTotal(Format):
    """How a policy did on all workloads of the job together, with the setting that serves it best there."""

    policy: Name = Field(description="Name of the policy.")
    knob: str = Field(description="The setting that a sweep varies.")
    value: float = Field(description="Its value.")
    workloads_held: int = Field(ge=0, description="Workloads in which it holds the attainment with this value.")
    workloads_attained: int = Field(ge=0, description="Workloads in which it holds it with some value.")
    worst_late_share: Ratio = Field(description="Largest share of late records in a workload.")
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
    rescale_mode: RescaleMode = Field(description="How rescales are made where the choice holds.")
    objective_s: Objective = Field(description="Waiting time beyond which a record is late, seconds.")
    attainment: float = Field(gt=0, lt=1, description="Share of the records that should be within it.")
    winners: tuple[WorkloadWinner, ...] = Field(description="The policy that served each workload best.")
    totals: tuple[PolicyTotal, ...] = Field(description="All policies over all workloads, the best first.")
    cluster: str = Field(description="Cluster that the replays ran on.")
    seed: int = Field(ge=0, description="First seed.")
    seeds: PositiveInt = Field(description="Number of seeds; figures are means over them.")
    evaluation: str = Field(description="Digest of the evaluation: its replays, the code and the objective.")
    results: str = Field(description="Key of the table of all replays in the workspace.")


def choose(
    request: EvaluationRequest, evaluation: Evaluation, job: str, workspace: Workspace, created_at: str
) -> PolicyChoice:
    """Store the choice for a job as its newest version; the same evaluation makes no second version.

    Args:
        job: name of a job of the evaluation.
        created_at: ISO 8601, UTC.
    """
    mode = request.rescale_modes[0]
    rankings = evaluation.rankings_of(job, mode)
    judged = verdict([ranking.group for ranking in rankings])
    totals = [_best_total(policy, rankings) for policy in judged.order]
    best = totals[0]
    made_by = evaluation_digest(request, evaluation)
    while True:
        before = _versions(workspace, job)
        newest = _newest(workspace, job) if before else None
        if newest is not None and newest.evaluation == made_by:
            return newest
        choice = PolicyChoice(
            job=job,
            version=max(before, default=0) + 1,
            created_at=created_at,
            policy=best.policy,
            settings=_peak(evaluation, job, best.policy) | _settings(request, mode, best),
            reason=judged.sentence,
            rescale_mode=mode,
            objective_s=request.objective_of(mode),
            attainment=request.attainment,
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


def _newest(workspace: Workspace, job: str) -> PolicyChoice | None:
    """None if its file is damaged, or of an earlier format."""
    try:
        return latest_choice(workspace, job)
    except Damaged:
        return None


def _settings(request: EvaluationRequest, mode: RescaleMode, best: PolicyTotal) -> dict[str, JsonValue]:
    settings = request.settings_of(best.policy, mode)
    return POLICIES[best.policy].with_knob(settings, best.value) if request.sweep else settings


def _peak(evaluation: Evaluation, job: str, policy: str) -> dict[str, JsonValue]:
    """What a policy was provisioned for, the highest peak of all workloads: `static` knows no rate but this."""
    cells = (done.cell for done in evaluation.finished if (done.cell.job.name, done.cell.policy) == (job, policy))
    rates = [rate for cell in cells if isinstance(rate := cell.settings.get("rate"), float)]
    return {"rate": max(rates)} if rates else {}


def _best_total(policy: str, rankings: Sequence[Ranking]) -> PolicyTotal:
    """With the best of its settings, each of which was replayed in all workloads."""
    by_value: dict[float, list[Standing]] = {}
    for ranking in rankings:
        for standing in ranking.settings_of(policy):
            by_value.setdefault(standing.value, []).append(standing)
    attained = sum(ranking.group.held_by(policy) for ranking in rankings)
    return min((_total(own, attained) for own in by_value.values()), key=_order)


def _total(standings: Sequence[Standing], attained: int) -> PolicyTotal:
    policy, value = standings[0].policy, standings[0].value
    return PolicyTotal(
        policy=policy,
        knob=POLICIES[policy].knob.setting,
        value=value,
        workloads_held=sum(s.holds for s in standings),
        workloads_attained=attained,
        worst_late_share=max(s.late_share for s in standings),
        worst_latency_p95_s=max((s.latency_p95_s for s in standings if s.latency_p95_s is not None), default=None),
        task_hours=math.fsum(s.task_hours for s in standings),
        memory_gib_hours=math.fsum(s.memory_gib_hours for s in standings),
    )


def _order(total: PolicyTotal) -> tuple[int, float, float]:
    costs = (total.task_hours, total.worst_late_share)
    return (-total.workloads_held, *(costs if total.workloads_held else reversed(costs)))


def _winner(ranking: Ranking) -> WorkloadWinner:
    return WorkloadWinner(workload=ranking.workload, policy=ranking.winner.policy, reason=ranking.reason)
