"""A new version of a plan from what is known, in seconds: the rate changed, and nothing is measured again."""

import time
from dataclasses import dataclass, replace
from typing import Final

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement import StablePlacement, fewest_moves
from models.plan import CostVector, Plan, PlanContent, same_deployment
from pipelines.knowledge import known
from pipelines.plan_store import PlanStore
from pipelines.planning import plan_content
from pipelines.progress import Progress, Quiet
from pipelines.publish import store_version
from pipelines.replan_policy import ReplanPolicy, scaled
from pipelines.run import PipelineRun
from pipelines.tuning import tuned_scaling
from pipelines.workspace import Workspace

PLACING_S: Final = 5.0
"""Seconds for finding out how few tasks have to move."""


@dataclass(frozen=True)
class Replanned:
    """The plan that now holds, and whether it is a new version."""

    plan: Plan
    is_new: bool


def replan(
    workspace: Workspace,
    job: str,
    rate: float,
    progress: Progress | None = None,
    policy: str | None = None,
    cause: str | None = None,
) -> Replanned:
    """Plan a job again for another rate: champion, measured rates and unit costs of the current plan's run.

    A plan that would deploy the same makes no new version.

    Args:
        job: name of a job that has a plan.
        rate: records/s at the sources together.
        policy: the scaling policy that says how many tasks each operator gets; without one, the evaluation's choice for
            the job, else DS2.
        cause: why the plan is asked for, in words; the first of its reasons.

    Raises:
        InvalidInput: the job has no plan yet, or its plan's run is not in the workspace; no such policy, or it decides
            by what a rate alone does not tell.
        Infeasible: the rate is out of reach, or the cluster too small.
    """
    progress = progress or Quiet()
    current = PlanStore(workspace).current(job)
    origin = PipelineRun.open(workspace, f"runs/{job}/{current.lineage.run}/request.json", progress)
    run = replace(origin, request=origin.request.model_copy(update={"rate": rate, "run": origin.run_id}))
    knowledge = known(run)
    began = time.monotonic()
    scaling, asked = scaled(knowledge, run, rate, policy)
    tuned = tuned_scaling(knowledge, scaling, run.cluster, workspace)
    content = keep_running(plan_content(run, tuned, trigger="replan"), scaling.dataflow, run.cluster, current)
    content = _with_grounds(content, asked, cause)
    progress.say(f"replan: planned {job} for {rate:,.0f} records/s in {time.monotonic() - began:.2f} s; {asked.reason}")
    if same_deployment(content, current) and content.target_rate == current.target_rate:
        progress.say(f"replan: plan {job}@{current.version} already is the plan for {rate:,.0f} records/s")
        return Replanned(current, is_new=False)
    return Replanned(store_version(run, content, tuned), is_new=True)


def _with_grounds(content: PlanContent, policy: ReplanPolicy, cause: str | None) -> PlanContent:
    """The plan, saying what asked for it and which policy it was scaled by."""
    lineage = content.lineage.model_copy(update={"policy_choice": policy.choice})
    reasons = (*([cause] if cause else []), policy.reason, *content.reasons)
    return content.model_copy(update={"lineage": lineage, "reasons": reasons})


def keep_running(content: PlanContent, dataflow: Dataflow, cluster: Cluster, current: Plan) -> PlanContent:
    """The plan with its tasks left where `current` runs them, as far as costs near its thresholds allow."""
    stable = fewest_moves(
        dataflow,
        cluster,
        running=current.placement,
        best=content.placement,
        thresholds=content.thresholds,
        clock=time.monotonic,
        time_limit_s=PLACING_S,
    )
    changes = {
        "placement": stable.placement,
        "cost": stable.cost,
        "thresholds": stable.allowed,
        "placement_status": content.placement_status if stable.cost == content.cost else "feasible",
        "reasons": (*content.reasons, *_move_reasons(stable, current)),
    }
    return PlanContent.model_validate(content.model_dump() | changes)


def _move_reasons(stable: StablePlacement, current: Plan) -> tuple[str, str]:
    proof = "no plan within these costs moves fewer" if stable.status == "optimal" else "fewer may be possible"
    moves = (
        f"{stable.moves} tasks start where version {current.version} does not run them ({proof}; {stable.least_moves} "
        f"at least): costs may reach the least thresholds and {stable.tolerance:.0%} more, and the plan of the least "
        f"costs would move {stable.best_moves}"
    )
    if stable.stay_cost is None:
        return moves, "what runs could not stay: it no longer fits the slots or the memory of its workers"
    return moves, (
        f"leaving everything where it runs would move {stable.stay_moves} and cost CPU {_of(stable.stay_cost, 'cpu')}, "
        f"state access {_of(stable.stay_cost, 'io')} and network {_of(stable.stay_cost, 'net')}; allowed are "
        f"{_of(stable.allowed, 'cpu')}, {_of(stable.allowed, 'io')} and {_of(stable.allowed, 'net')}"
    )


def _of(cost: CostVector, dimension: str) -> str:
    return f"{getattr(cost, dimension):.4f}"
