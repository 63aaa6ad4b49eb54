"""A merged plan that does harm: its return is proposed in a real git repository, of Sluice's fields alone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from flink.server import FakeFlink
from flink_client.rest.client import FlinkRest
from on_kubernetes.deployed_repository import FILE, MANIFEST, DeployedRepository, git
from on_kubernetes.deployed_resource import CHAIN, OTHER, OVERRIDES, SOURCE
from pipelines.apply.applied import Applied
from pipelines.apply.gitops.merging import verify_merged
from pipelines.apply.gitops.operating import follow_merged, keep_proposal
from pipelines.apply.gitops.proposal import Proposal
from pipelines.apply.gitops.proposing import observed_before, planned_merge, propose
from pipelines.apply.record import record
from pipelines.inputs.operations.repository import DeploymentRepository
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from workspaces.operated_job import JOB, OperatedJob

pytestmark = pytest.mark.slow
FORMER, PLANNED = f"{CHAIN}:1,{OTHER}:5", f"{CHAIN}:3,{OTHER}:5,{SOURCE}:1"
RETURNED = f"{CHAIN}:1,{OTHER}:5,{SOURCE}:1"
"""The source's tasks were not stated before; Flink ran one."""


class MergedPlan:
    """Plan 1 of word count: one task of the source and three of the chain, where Flink runs one and the manifest states one."""

    def __init__(self, folder: Path, flink: FakeFlink, deployed: DeployedRepository) -> None:
        self.job, self.flink, self.deployed = OperatedJob(folder, Workspace(folder / "workspace")), flink, deployed
        self.plan = self.job.publish(3)
        deployed.write(FILE, MANIFEST)

    def propose(self, observe_s: float = 0.0) -> Proposal:
        """A proposal that is stored, as the command and the DAG do it."""
        repository = DeploymentRepository.model_validate(self.deployed.block(deploy_s=0.5))
        with FlinkRest(self.flink.url) as rest:
            planned = planned_merge(rest, self.plan, repository, job=JOB, vertices=None, job_file=None)
            proposal = propose(
                PlanStore(self.job.workspace),
                planned,
                flink=self.flink.url,
                flink_job=JOB,
                merge_s=3600.0,
                observe_s=observe_s,
                before=observed_before(rest, planned, observe_s, print),
            )
        keep_proposal(self.job.workspace, proposal)
        return proposal

    def merge(self, how: str = "merge", observe_s: float = 0.0) -> Proposal:
        proposal = self.propose(observe_s)
        self.deployed.merge(proposal.branch, how, delete=True)
        return proposal

    def deploy(self) -> None:
        self.flink.tasks = {SOURCE: 1, CHAIN: 3}

    def follow(self, proposal: Proposal) -> Applied:
        with FlinkRest(self.flink.url) as rest:
            return follow_merged(self.job.workspace, rest, self.plan, proposal, None, print)

    @property
    def head(self) -> str:
        return git(self.deployed.bare, "rev-parse", "main")


@pytest.fixture
def merged(tmp_path: Path, flink: FakeFlink, deployed: DeployedRepository) -> MergedPlan:
    return MergedPlan(tmp_path, flink, deployed)


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_a_plan_that_is_not_deployed_in_time_has_its_return_in_a_branch_of_its_own(
    merged: MergedPlan, deployed: DeployedRepository, how: str
) -> None:
    proposal = merged.merge(how)
    head = merged.head
    applied = merged.follow(proposal)
    assert applied.outcome == "failed" and applied.proposed_return is not None
    branch = f"sluice/{JOB}-1-return-{head[:8]}"
    made = applied.proposed_return
    assert (made.branch, made.reverts, made.commit) == (branch, head, git(deployed.bare, "rev-parse", branch))
    assert applied.reason.endswith(
        f"; merge the branch {branch} of {deployed.url} into main to return to what the file stated before"
    )
    assert merged.head == head, "the branch that is deployed is not pushed to"
    assert deployed.read(branch) == MANIFEST.replace(FORMER, RETURNED)
    assert git(deployed.bare, "log", "-1", "--format=%B", branch).splitlines() == [
        "Return from wordcount@1 to what the file stated before",
        "",
        f"What was seen: main has the plan, but 'flatmap -> count' still has 1 tasks and not 3 0.5 s later; check what "
        f"deploys from {deployed.url}.",
        "",
        f"Reverts what commit {head} wrote for the plan, and nothing else of the file:",
        "- flatmap -> count: 3 -> 1 tasks",
    ]
    assert git(deployed.bare, "diff", "--name-only", "main", branch) == FILE
    deployed.merge(branch)
    assert deployed.read() == MANIFEST.replace(FORMER, RETURNED)


def test_a_plan_that_makes_the_job_worse_is_compared_with_the_job_at_the_proposal(merged: MergedPlan) -> None:
    proposal = merged.merge(observe_s=1.0)
    assert proposal.observed is not None and proposal.observed.rate == pytest.approx(1500.0)
    merged.deploy()
    merged.flink.emitted_per_s, merged.flink.backpressure = 600.0, 0.5
    applied = merged.follow(proposal)
    assert applied.reason.startswith(
        "the plan made it worse: 600 records/s after 1,500 before, with the sources backpressured 50% of the time after 0%; "
        f"merge the branch sluice/{JOB}-1-return-"
    )
    assert applied.effect is not None and applied.effect.rate_before == pytest.approx(1500.0)
    assert applied.outcome == "failed" and merged.flink.put_bodies == []


def test_where_the_plan_is_not_deployed_yet_it_is_compared_with_the_job_at_the_merge(merged: MergedPlan) -> None:
    """1,500 records/s at the proposal, 600 at the merge, and 590 by the plan, whose sources are held back."""
    proposal = merged.merge(observe_s=1.0)
    merged.flink.emitted_per_s = 600.0

    def deploy(_seconds: float) -> None:
        merged.deploy()
        merged.flink.emitted_per_s, merged.flink.backpressure = 590.0, 0.5

    with FlinkRest(merged.flink.url) as rest:
        applied = verify_merged(rest, merged.plan, proposal, proposal.observed, None, clock=lambda: 0.0, sleep=deploy)
    assert applied.outcome == "applied" and applied.effect is not None, "590 is more than 90% of 600"
    assert (applied.effect.rate_before, applied.effect.rate) == (pytest.approx(600.0), pytest.approx(590.0))


def test_a_plan_that_runs_no_worse_is_applied_and_nothing_is_proposed(
    merged: MergedPlan, deployed: DeployedRepository
) -> None:
    """Fewer records arrive than at the proposal, but the sources are not held back."""
    proposal = merged.merge(observe_s=1.0)
    merged.deploy()
    merged.flink.emitted_per_s = 600.0
    applied = merged.follow(proposal)
    assert (applied.outcome, applied.proposed_return, deployed.branches) == ("applied", None, ["main"])


def test_the_file_that_an_earlier_plan_wrote_returns_to_that_plan(
    merged: MergedPlan, deployed: DeployedRepository
) -> None:
    deployed.write(FILE, None)
    merged.merge()
    first = deployed.read()
    merged.deploy()
    merged.plan = merged.job.publish(4)
    applied = merged.follow(merged.merge())
    made = applied.proposed_return
    assert made is not None and made.branch == f"sluice/{JOB}-2-return-{merged.head[:8]}"
    assert applied.reason.endswith("into main to return to wordcount@1")
    assert deployed.read(made.branch) == first
    assert "- flatmap -> count: 4 -> 3 tasks" in git(deployed.bare, "log", "-1", "--format=%B", made.branch)


def test_later_edits_of_other_fields_stay(merged: MergedPlan, deployed: DeployedRepository) -> None:
    proposal = merged.merge()
    brought = merged.head
    for old, new in (
        ("flink:1.18", "flink:1.19"),
        ("scheduler: adaptive   # scaled in place", "scheduler: adaptive   # in place\n    web.submit.enable: 'false'"),
        (f"{OTHER}:5", f"{OTHER}:6"),
        ("    sluice/plan", "    team: search\n    sluice/plan"),
    ):
        deployed.edit(lambda text, old=old, new=new: text.replace(old, new))  # type: ignore[misc]
    now = deployed.read()
    made = merged.follow(proposal).proposed_return
    assert made is not None and made.reverts == brought, "not one of the later commits"
    assert deployed.read(made.branch) == now.replace("    sluice/plan: wordcount@1\n", "").replace(
        f"{CHAIN}:3", f"{CHAIN}:1"
    )
    assert "team: search" in now and f"{OTHER}:6" in now and "flink:1.19" in now


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda text: text.replace(f"{CHAIN}:3", f"{CHAIN}:2"),
            "it has 2 tasks of 'flatmap -> count', not 3",
        ),
        (lambda text: text.replace("wordcount@1", "wordcount@2"), "it names wordcount@2, not wordcount@1"),
        (lambda text: MANIFEST, "it names no plan, not wordcount@1"),
        (lambda text: text.replace("{", "{{{"), f"it cannot be compared ({FILE} in main is no YAML"),
    ],
)
def test_a_later_change_of_the_plans_fields_is_respected(
    merged: MergedPlan, deployed: DeployedRepository, change: Callable[[str], str], sentence: str
) -> None:
    proposal = merged.merge()
    deployed.edit(change)
    applied = merged.follow(proposal)
    assert f"; no return is proposed, since {FILE} in main was changed since: {sentence}" in applied.reason
    assert (applied.outcome, applied.proposed_return, deployed.branches) == ("failed", None, ["main"])


def test_a_task_that_is_repeated_finds_its_return(merged: MergedPlan, deployed: DeployedRepository) -> None:
    proposal = merged.merge()
    first = merged.follow(proposal)
    deployed.edit(lambda text: text.replace("flink:1.18", "flink:1.19"))
    second = merged.follow(proposal)
    assert first.proposed_return is not None and second.proposed_return == first.proposed_return
    assert (second.reason, len(deployed.branches)) == (first.reason, 2)


def test_a_command_that_was_stopped_after_the_merge_compares_with_the_job_before_it(merged: MergedPlan) -> None:
    merged.merge(observe_s=1.0)
    merged.deploy()
    merged.flink.emitted_per_s, merged.flink.backpressure = 600.0, 0.5
    again = merged.propose(observe_s=1.0)
    assert again.is_stated and again.observed is None
    applied = merged.follow(again)
    assert applied.reason.startswith("the plan made it worse: 600 records/s after 1,500 before")
    made = applied.proposed_return
    assert made is not None and f"{OVERRIDES}: {RETURNED}" in merged.deployed.read(made.branch)


def test_a_plan_that_has_run_is_not_returned_from_when_it_is_looked_at_again(
    merged: MergedPlan, deployed: DeployedRepository
) -> None:
    proposal = merged.merge()
    merged.deploy()
    record(merged.job.workspace, merged.follow(proposal))
    merged.flink.tasks = {SOURCE: 1, CHAIN: 1}
    applied = merged.follow(merged.propose())
    assert applied.reason.endswith("no return is proposed, since main had the plan already, and the job has run by it")
    assert deployed.branches == ["main"]


def test_a_plan_that_people_wrote_into_the_target_returns_to_the_file_before_it(
    merged: MergedPlan, deployed: DeployedRepository
) -> None:
    """Without a proposal from before, it is not known what Flink ran: the override of the source is removed."""
    planned = MANIFEST.replace(FORMER, PLANNED).replace(
        "  name: words   # not", "  annotations:\n    sluice/plan: wordcount@1\n  name: words   # not"
    )
    deployed.write(FILE, planned)
    made = merged.follow(merged.propose()).proposed_return
    assert made is not None and deployed.read(made.branch) == MANIFEST


def _first_version(merged: MergedPlan) -> Proposal:
    merged.deployed.write(FILE, None)
    return merged.merge()


def _taken_branch(merged: MergedPlan) -> Proposal:
    proposal = merged.merge()
    branch = f"sluice/{JOB}-1-return-{merged.head[:8]}"
    git(merged.deployed.bare, "branch", branch, "main")
    return proposal


def _same_tasks(merged: MergedPlan) -> Proposal:
    merged.deployed.edit(lambda text: text.replace(FORMER, PLANNED))
    return merged.merge()


def _lost_comment(merged: MergedPlan) -> Proposal:
    proposal = merged.merge()
    merged.deployed.edit(lambda text: text.replace("wordcount@1\n", "wordcount@1\n    # of the platform's team\n"))
    return proposal


def _long_ago(merged: MergedPlan) -> Proposal:
    proposal, bare = merged.merge(), merged.deployed.bare
    for _ in range(100):
        commit = git(bare, "commit-tree", "main^{tree}", "-p", "main", "-m", "Edit another file")
        git(bare, "update-ref", "refs/heads/main", commit)
    return proposal


def _long_ago_and_edited_since(merged: MergedPlan) -> Proposal:
    proposal = _long_ago(merged)
    merged.deployed.edit(lambda text: text.replace("flink:1.18", "flink:1.19"))
    return proposal


def _out_of_reach(merged: MergedPlan) -> Proposal:
    proposal = merged.merge()
    merged.deployed.bare.rename(merged.deployed.bare.with_name("away.git"))
    return proposal


@pytest.mark.parametrize(
    ("arrange", "sentence"),
    [
        (
            _first_version,
            f"{FILE} came with wordcount@1, its first version, so there is nothing to return to; state other",
        ),
        (_taken_branch, " is there already with other content; delete it, or revert commit "),
        (_same_tasks, f"{FILE} stated the same tasks before wordcount@1"),
        (_lost_comment, f"{FILE} cannot be edited without losing a comment below the lines that name the plan"),
        (_long_ago_and_edited_since, "main has had wordcount@1 for more than 100 commits; revert it yourself"),
        (_long_ago, "main has had wordcount@1 for more than 100 commits; revert it yourself"),
        (_out_of_reach, "the git repository '"),
    ],
)
def test_why_nothing_is_proposed_is_one_sentence(
    merged: MergedPlan, arrange: Callable[[MergedPlan], Proposal], sentence: str
) -> None:
    proposal = arrange(merged)
    applied = merged.follow(proposal)
    before, _, why = applied.reason.partition("; no return is proposed, since ")
    assert before.startswith("main has the plan, but ") and sentence in why
    assert (applied.outcome, applied.proposed_return) == ("failed", None)


def test_a_repository_that_is_out_of_reach_is_named_with_what_git_says(merged: MergedPlan) -> None:
    applied = merged.follow(_out_of_reach(merged))
    assert f"the git repository '{merged.deployed.bare}' cannot be read (git: " in applied.reason
