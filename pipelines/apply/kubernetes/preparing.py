"""Determines the change of a `FlinkDeployment` that applies a plan; nothing is changed."""

from collections.abc import Mapping
from dataclasses import dataclass

from flink_client.jobs.deployment import check_most_tasks, wanted_parallelism
from flink_client.jobs.running import Scheduler, find_job, running_job
from flink_client.jobs.running import scheduler as scheduler_of
from flink_client.jobs.running import settings as settings_of
from flink_client.kubernetes.progress import unsettled
from flink_client.kubernetes.resource import FlinkDeployment
from flink_client.kubernetes.scaling import SpecChange, spec_change
from flink_client.overrides import ignored_at_start
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput, SluiceError
from models.job import Job
from models.plan.content import Plan
from models.wording import tasks
from pipelines.apply.applied import Method, VertexChange
from pipelines.apply.export import task_manager_size
from pipelines.apply.preparation import changes_of, wanted_of


@dataclass(frozen=True)
class ResourcePreparation:
    """The change that makes the operator run a plan."""

    plan: Plan
    resource: FlinkDeployment
    """As it is now; the change is refused if it differs by then."""
    change: SpecChange
    vertices: Mapping[str, str]
    """Vertex id by operator of the plan."""
    wanted: Mapping[str, int]
    """Tasks by vertex id."""
    changes: tuple[VertexChange, ...]
    advice: tuple[str, ...]
    """Parts of the plan that are not written."""

    @property
    def method(self) -> Method:
        if not self.change.spec:
            return "none"
        return "rescale" if self.change.redeploys is None else "redeploy"


def prepare_resource(
    resource: FlinkDeployment,
    plan: Plan,
    *,
    rest: FlinkRest | None,
    vertices: Mapping[str, str] | None,
    job_file: Job | None,
    redeploy: bool,
) -> ResourcePreparation:
    """Determine what to write into a resource.

    Args:
        rest: the Flink that it deploys, which knows the vertices of the job; None: `vertices` names them.
        vertices: vertex id by operator; None: operators are found by their names, as Flink has them.
        job_file: the job's present file, which may say what Flink calls its operators.
        redeploy: whether the operator may redeploy the job; else sizes of TaskManagers are advice, and a change that the
            operator cannot make in place is refused.

    Raises:
        InvalidInput: the plan does not fit the job, or takes a redeployment that was not allowed.
        Infeasible: Flink could not run the plan.
        SluiceError: the operator is at work on the resource, the job does not run, or Flink does not answer.
    """
    _check_settled(resource)
    adaptive: bool | None = None
    if rest is None:
        if vertices is None:
            raise InvalidInput(
                "Flink's ids of the vertices are not known; give --flink URL to read them from the running job, or "
                "--vertices FILE with {operator: vertexId}"
            )
        wanted = wanted_parallelism(plan, vertices)
        running: Mapping[str, int] = {}
        changes = _changes(plan, vertices, wanted, resource)
    else:
        job = running_job(rest, resource.job_id or find_job(rest, plan.job, None))
        vertices, wanted = wanted_of(rest, plan, job, vertices, job_file)
        check_most_tasks(job, wanted)
        running, changes = job.parallelism, changes_of(plan, vertices, wanted, job)
        adaptive = scheduler_of(settings_of(rest)) is Scheduler.ADAPTIVE
    size = task_manager_size(plan)
    in_full = spec_change(resource, wanted, running=running, size=size, adaptive=adaptive)
    change = in_full if redeploy else spec_change(resource, wanted, running=running, size=None, adaptive=adaptive)
    if change.redeploys is not None:
        _check_redeployment(resource, change.redeploys, redeploy)
    left = [
        f"{field}; --redeploy writes it, and the operator then redeploys the job"
        for field in in_full.fields
        if field not in change.fields
    ]
    if not change.spec:  # the resource states the plan, but the operator has not brought Flink to it
        left += [
            f"Flink runs {c.name!r} with {tasks(c.before)}, not {c.after} as the resource states; check the operator's log"
            for c in changes
            if c.before is not None and c.before != c.after
        ]
    return ResourcePreparation(
        plan=plan,
        resource=resource,
        change=change,
        vertices=vertices,
        wanted=wanted,
        changes=changes,
        advice=tuple(left),
    )


def resource_steps(prepared: ResourcePreparation, timeout_s: float) -> list[str]:
    """The steps in order; none if the resource states the plan already."""
    if prepared.method == "none":
        return []
    resource, change = prepared.resource, prepared.change
    how = (
        "the operator scales the running job in place"
        if change.redeploys is None
        else f"the operator redeploys the job (upgradeMode: {upgrade_mode(resource)}), since {change.redeploys}"
    )
    return [
        f"patch FlinkDeployment {resource.reference} if it is still at resourceVersion {resource.resource_version}: "
        f"{'; '.join(change.fields)}",
        how,
        f"wait until the operator reports STABLE and the job runs; after {timeout_s:g} s restore the present spec",
    ]


def upgrade_mode(resource: FlinkDeployment) -> str:
    """How the operator takes the job's state over when it redeploys it."""
    return str((resource.spec.get("job") or {}).get("upgradeMode", "stateless"))


def _check_settled(resource: FlinkDeployment) -> None:
    if (reported := unsettled(resource)) is not None:
        raise SluiceError(
            f"the operator is not done with FlinkDeployment {resource.reference}: it reports {reported}; wait until it is "
            "STABLE, then apply the plan again"
        )


def _check_redeployment(resource: FlinkDeployment, why: str, accepted: bool) -> None:
    """Raises InvalidInput: it was not accepted, or it would start the job with other tasks than the plan's."""
    if not accepted:
        raise InvalidInput(
            f"the operator would redeploy the job, since {why}; give --redeploy to accept that (upgradeMode: "
            f"{upgrade_mode(resource)})"
        )
    if (ignored := ignored_at_start(str(resource.spec.get("flinkVersion", "")))) is not None:
        raise InvalidInput(
            f"{ignored}, and the operator would redeploy it, since {why}; let the operator scale in place (native mode, "
            "adaptive scheduler, no --redeploy), and change sizes of TaskManagers with your own deployment before"
        )


def _changes(
    plan: Plan, vertices: Mapping[str, str], wanted: Mapping[str, int], resource: FlinkDeployment
) -> tuple[VertexChange, ...]:
    """The tasks of each vertex by the resource alone, where vertices have no names but their operators'."""
    operators = {id_: tuple(name for name in plan.parallelism if vertices[name] == id_) for id_ in wanted}
    return tuple(
        VertexChange(
            vertex=id_,
            name=" -> ".join(operators[id_]),
            operators=operators[id_],
            before=resource.overrides.get(id_),
            after=n,
        )
        for id_, n in wanted.items()
    )
