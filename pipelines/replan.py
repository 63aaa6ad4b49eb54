"""A new version of a plan from what is known, in seconds: the rate changed, and nothing is measured again."""

from dataclasses import dataclass, replace

from models.plan import Plan, same_deployment
from pipelines.knowledge import known
from pipelines.plan_store import PlanStore
from pipelines.planning import plan_content
from pipelines.progress import Progress, Quiet
from pipelines.publish import store_version
from pipelines.run import PipelineRun
from pipelines.scaling import scale
from pipelines.tuning import tuned_scaling
from pipelines.workspace import Workspace


@dataclass(frozen=True)
class Replanned:
    """The plan that now holds, and whether it is a new version."""

    plan: Plan
    is_new: bool


def replan(workspace: Workspace, job: str, rate: float, progress: Progress | None = None) -> Replanned:
    """Plan a job again for another rate: champion, measured rates and unit costs of the current plan's run.

    A plan that would deploy the same makes no new version.

    Args:
        job: name of a job that has a plan.
        rate: records/s at the sources together.

    Raises:
        InvalidInput: the job has no plan yet, or its plan's run is not in the workspace.
        Infeasible: the rate is out of reach, or the cluster too small.
    """
    progress = progress or Quiet()
    current = PlanStore(workspace).current(job)
    origin = PipelineRun.open(workspace, f"runs/{job}/{current.lineage.run}/request.json", progress)
    run = replace(origin, request=origin.request.model_copy(update={"rate": rate, "run": origin.run_id}))
    knowledge = known(run)
    scaling = scale(knowledge, run.cluster, rate, run.request.headroom, run.request.memory_mb, "ds2")
    tuned = tuned_scaling(knowledge, scaling, run.cluster)
    content = plan_content(run, tuned, trigger="replan")
    if same_deployment(content, current) and content.target_rate == current.target_rate:
        progress.say(f"replan: plan {job}@{current.version} already is the plan for {rate:,.0f} records/s")
        return Replanned(current, is_new=False)
    return Replanned(store_version(run, content, tuned), is_new=True)
