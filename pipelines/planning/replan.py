"""Replanning: a new version of a plan for another rate, in seconds and without new measurements."""

import time
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from models.errors import InvalidInput
from models.placement import fewest_moves
from models.placement.shared.stable import fewest_slot_moves
from models.plan.content import Plan, PlanContent
from models.plan.differences import same_deployment
from models.planning.assembling import Decisions, with_moves
from models.planning.parallelism import Scaling
from models.planning.workers.planned import PlannedWorkers
from models.wording import amount
from pipelines.planning.gathering import gather
from pipelines.planning.placing import tuned_placement
from pipelines.planning.replan_policy import ReplanPolicy, scaled_for_replan
from pipelines.progress import Progress, Quiet
from pipelines.run import PipelineRun
from pipelines.stages.publish import content_of, lacks_report, store_version
from pipelines.store.pins import check_unpinned
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

PLACING_S: Final = 5.0
"""Time limit of the search for the fewest moves, seconds."""


@dataclass(frozen=True)
class Replanned:
    """The plan now in force, and whether it is a new version."""

    plan: Plan
    is_new: bool

    def is_made_since(self, start: datetime) -> bool:
        """Whether this replan made the plan, or another after `start`, such as one that was killed once it was stored.

        Times of plans are whole seconds, rounded down, so that one made in the second of `start` counts as earlier.
        """
        earlier = datetime.fromisoformat(self.plan.created_at) < start
        return self.is_new or (self.plan.lineage.trigger == "replan" and not earlier)


@dataclass(frozen=True)
class ReplanProposal:
    """What a replan would publish; nothing is stored yet."""

    run: PipelineRun
    current: Plan
    content: PlanContent
    decisions: Decisions

    @property
    def is_new(self) -> bool:
        """Whether it deploys other than the current plan, or for another rate."""
        return not same_deployment(self.content, self.current) or self.content.target_rate != self.current.target_rate

    @property
    def is_unfinished(self) -> bool:
        """Whether a replan by this model made the current plan, but was killed before all of its report was stored."""
        made, current = self.content.lineage, self.current.lineage
        if (current.trigger, current.model_uri) != (made.trigger, made.model_uri):
            return False
        return lacks_report(self.run.workspace, self.current, self.decisions.sizing.model)


def replan(
    workspace: Workspace,
    job: str,
    rate: float,
    progress: Progress | None = None,
    policy: str | None = None,
    cause: str | None = None,
) -> Replanned:
    """Replan a job for another rate, with the champion and the rates and unit costs of the current plan's run.

    A plan that would deploy the same makes no new version; if its replan was killed, its report is made up for. Arguments
    and errors are those of `propose`.
    """
    progress = progress or Quiet()
    proposal = propose(workspace, job, rate, progress, policy, cause)
    if not proposal.is_new and not proposal.is_unfinished:
        progress.say(f"replan: plan {job}@{proposal.current.version} is already the plan for {amount(rate)} records/s")
        return Replanned(proposal.current, is_new=False)
    plan = store_version(proposal.run, proposal.content, proposal.decisions)
    return Replanned(plan, is_new=plan.version != proposal.current.version)


def propose(
    workspace: Workspace,
    job: str,
    rate: float,
    progress: Progress | None = None,
    policy: str | None = None,
    cause: str | None = None,
) -> ReplanProposal:
    """The plan that a replan would publish.

    Args:
        job: name of a job that has a plan.
        rate: records/s at the sources together.
        policy: the scaling policy that decides the tasks of each operator; if absent, the evaluation's choice for the
            job, else DS2.
        cause: the reason of the replan, in words; the first of the plan's reasons.

    Raises:
        InvalidInput: the job has no plan yet, or its plan's run is not in the workspace; the policy is unknown, or needs
            metrics that a rate alone does not give.
        Infeasible: the rate is out of reach, or the cluster too small.
        PinnedJob: the job is pinned to a version of its plan.
    """
    progress = progress or Quiet()
    check_unpinned(workspace, job)
    current = PlanStore(workspace).current(job)
    origin = PipelineRun.of_plan(workspace, current, progress)
    if origin.request.testbed == "running":
        raise InvalidInput(
            f"plan {job}@{current.version} was made from a running job, and by no registered model; plan it from the running "
            "job again: sluice plan --from-running"
        )
    run = replace(origin, request=origin.request.model_copy(update={"rate": rate, "run": origin.run_id}))
    began = time.monotonic()
    known = gather(run)
    sizing, scaling, chosen = scaled_for_replan(known, run, rate, policy)
    planned = PlannedWorkers.of(run.cluster, sizing, scaling, rate)
    placement = tuned_placement(scaling, rate, planned.cluster, (workspace, known.operators))
    decisions = Decisions(sizing, scaling, placement, planned)
    content = content_of(run, decisions, trigger="replan")
    content = _with_grounds(_with_fewest_moves(content, scaling, current, planned), chosen, cause)
    progress.say(
        f"replan: planned {job} for {amount(rate)} records/s in {time.monotonic() - began:.2f} s; {chosen.reason}"
    )
    return ReplanProposal(run, current, content, decisions)


def _with_fewest_moves(content: PlanContent, scaling: Scaling, current: Plan, planned: PlannedWorkers) -> PlanContent:
    """The plan with what already runs where it is, tasks or shared slots, as far as the costs allow."""
    vertices, cluster = scaling.shared, planned.cluster
    if vertices is not None:
        stable, slots = fewest_slot_moves(
            vertices,
            cluster,
            running=current.slots,
            best=content.slots,
            thresholds=content.thresholds,
            clock=time.monotonic,
            time_limit_s=PLACING_S,
        )
        return with_moves(content, stable, current, planned, slots)
    stable = fewest_moves(
        scaling.dataflow,
        cluster,
        running=current.placement,
        best=content.placement,
        thresholds=content.thresholds,
        clock=time.monotonic,
        time_limit_s=PLACING_S,
    )
    return with_moves(content, stable, current, planned)


def _with_grounds(content: PlanContent, policy: ReplanPolicy, cause: str | None) -> PlanContent:
    """The plan with the cause of the replan and the policy that scaled it."""
    lineage = content.lineage.model_copy(update={"policy_choice": policy.choice})
    reasons = (*([cause] if cause else []), policy.reason, *content.reasons)
    return content.model_copy(update={"lineage": lineage, "reasons": reasons})
