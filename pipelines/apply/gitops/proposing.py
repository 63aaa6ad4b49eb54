"""Determines what a plan changes in the repository that its job is deployed from, and writes it into a branch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import unified_diff

from flink_client.jobs.deployment import check_most_tasks
from flink_client.jobs.running import find_named_job, running_job
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput
from models.job import Job
from models.plan.content import Plan
from pipelines.apply.applied import Effect, VertexChange
from pipelines.apply.effect import BEFORE_S, observed
from pipelines.apply.export import ExportFormat, remarks
from pipelines.apply.gitops.exporting import export_to_branch, planned_text
from pipelines.apply.gitops.git.program import git_on
from pipelines.apply.gitops.git.remote_file import FileInBranch, RemoteFile
from pipelines.apply.gitops.proposal import Proposal
from pipelines.apply.gitops.stated import plan_to_state, stated_in
from pipelines.apply.preparation import changes_of, wanted_of
from pipelines.inputs.operations.repository import DeploymentRepository
from pipelines.store.digests import digest
from pipelines.store.plans import PlanStore

_FORM = ExportFormat.FLINKDEPLOYMENT


@dataclass(frozen=True)
class PlannedMerge:
    """The change of a resource in a repository that makes its job run a plan."""

    plan: Plan
    repository: DeploymentRepository
    target: str
    """Branch that is deployed."""
    now: FileInBranch
    """The file in it."""
    vertices: Mapping[str, str]
    """Vertex id by operator."""
    wanted: Mapping[str, int]
    """Tasks by vertex id that Flink is to run."""
    changes: tuple[VertexChange, ...]
    flink_job: str
    """Flink's id of the job."""

    @property
    def branch(self) -> str:
        return self.repository.branch(self.plan.job, self.plan.version)

    @property
    def advice(self) -> tuple[str, ...]:
        """Parts of the plan that the file does not state."""
        return tuple(remarks(self.plan, _FORM, self.vertices))

    @property
    def is_stated(self) -> bool:
        """Whether the target states the plan already."""
        stated = stated_in(self.now.text, self.plan.job, self.repository.path)
        return stated is not None and stated.includes(plan_to_state(self.plan, self.vertices))

    @property
    def is_done(self) -> bool:
        """Whether the target states the plan, and Flink runs it."""
        return self.is_stated and all(c.before == c.after for c in self.changes)

    @property
    def difference(self) -> str:
        """The change of the file, as a unified diff; empty if the target states the plan."""
        if self.is_stated:
            return ""
        path, former = self.repository.path, self.now.text
        new = planned_text(self.plan, _FORM, self.vertices, former, path)
        lines = ((former or "").splitlines(keepends=True), new.splitlines(keepends=True))
        return "".join(unified_diff(*lines, f"{self.target}:{path}", f"{self.branch}:{path}"))


def planned_merge(
    rest: FlinkRest,
    plan: Plan,
    repository: DeploymentRepository,
    *,
    job: str,
    vertices: Mapping[str, str] | None,
    job_file: Job | None,
) -> PlannedMerge:
    """Determine the change of the file; nothing is changed.

    Args:
        job: Flink's name or id of the job.
        vertices: vertex id by operator; without it, operators are found by their names.
        job_file: the job's present file, which may say what Flink calls its operators.

    Raises:
        InvalidInput: the plan does not fit the job, or the file cannot have it.
        Infeasible: Flink could not run the plan.
        SluiceError: the job does not run, or Flink or the repository does not answer.
    """
    running = running_job(rest, find_named_job(rest, job))
    found, wanted = wanted_of(rest, plan, running, vertices, job_file)
    check_most_tasks(running, wanted)
    target, now = _target(repository)
    return PlannedMerge(
        plan=plan,
        repository=repository,
        target=target,
        now=now,
        vertices=found,
        wanted=wanted,
        changes=changes_of(plan, found, wanted, running),
        flink_job=running.id,
    )


def merge_steps(planned: PlannedMerge, observe_s: float) -> list[str]:
    """The steps in order; none if the target states the plan, and Flink runs it."""
    if planned.is_done:
        return []
    place, plan = planned.repository, f"{planned.plan.job}@{planned.plan.version}"
    write = [
        f"write {plan} to {place.path} in the branch {planned.branch} of {place.url}, which starts from {planned.target}",
        f"wait until {planned.target} has it; after {place.merge_s:g} s give up, and leave the branch as it is",
    ]
    return [
        *([] if planned.is_stated else write),
        f"wait until all tasks run as planned; after {place.deploy_s:g} s propose the return in a branch",
        *([f"observe the job for {observe_s:g} s"] if observe_s > 0 else []),
    ]


def observed_before(
    rest: FlinkRest, planned: PlannedMerge, observe_s: float, say: Callable[[str], None]
) -> Effect | None:
    """The job before the plan; None where it was not observed, or the target states the plan already."""
    if planned.is_stated:
        return None
    return observed(rest, planned, planned.flink_job, min(observe_s, BEFORE_S), say)


def propose(
    store: PlanStore,
    planned: PlannedMerge,
    *,
    flink: str,
    flink_job: str,
    merge_s: float,
    observe_s: float,
    before: Effect | None = None,
    approved_by: str | None = None,
) -> Proposal:
    """Write the plan into its branch, unless the branch, or the target, has it.

    Args:
        flink: REST address of the cluster, or connection:NAME.
        flink_job: Flink's name or id of the job.
        merge_s: how long the merge is waited for, seconds.
        observe_s: how long the job is observed afterwards, seconds; 0: not at all.
        before: the job before the plan.

    Raises:
        InvalidInput: the file cannot have the plan.
        SluiceError: git failed; nothing was changed.
    """
    plan, place = planned.plan, planned.repository
    proposed_at = datetime.now(UTC).isoformat(timespec="seconds")
    committed = None
    if not planned.is_stated:
        committed = export_to_branch(
            store, plan, _FORM, planned.vertices, place.url, planned.branch, place.path, planned.target
        )
    return Proposal(
        job=plan.job,
        version=plan.version,
        plan_digest=digest(plan),
        repository=place.url,
        path=place.path,
        target=planned.target,
        branch=planned.branch,
        commit=None if committed is None else committed.commit,
        wanted=plan_to_state(plan, planned.vertices),
        before=stated_in(planned.now.text, plan.job, place.path),
        changes=planned.changes,
        running=dict(planned.wanted),
        observed=before,
        advice=planned.advice,
        flink=flink,
        flink_job=flink_job,
        proposed_at=proposed_at,
        look_every_s=place.look_every_s,
        merge_s=merge_s,
        deploy_s=place.deploy_s,
        observe_s=observe_s,
        approved_by=approved_by,
    )


def _target(repository: DeploymentRepository) -> tuple[str, FileInBranch]:
    """The branch that is deployed, and the file in it."""
    target = repository.target
    if target is None:
        with git_on(repository.url) as git:
            target = git.default_branch()
            if target is None:
                raise InvalidInput(
                    f"{git.shown} names no default branch; push a first commit, or state the branch that is deployed as "
                    "'target' in operations.apply.repository"
                )
    found = RemoteFile(repository.url, repository.path).read(target)
    if target not in found:
        raise InvalidInput(
            f"{repository.url} has no branch {target!r}; correct 'target' in operations.apply.repository of the job's file"
        )
    return target, found[target]
