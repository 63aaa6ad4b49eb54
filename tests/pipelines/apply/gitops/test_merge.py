"""Whether a proposed plan is merged, in a real git repository: by its content, however it got there."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flink.server import FakeFlink, word_count_plan
from flink_client.rest.client import FlinkRest
from models.errors import InvalidInput
from on_kubernetes.deployed_repository import FILE, MANIFEST, DeployedRepository, git
from on_kubernetes.deployed_resource import CHAIN, OTHER, OVERRIDES, SOURCE
from pipelines.apply.gitops.merge import MergeLook, MergeWatch
from pipelines.apply.gitops.merging import await_merge
from pipelines.apply.gitops.proposal import Proposal
from pipelines.apply.gitops.proposing import PlannedMerge, planned_merge, propose
from pipelines.inputs.operations.repository import DeploymentRepository
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

pytestmark = pytest.mark.slow
BRANCH = "sluice/wordcount-1"


@pytest.fixture
def store(tmp_path: Path) -> PlanStore:
    """Plan 1 has one task of the source and three of the chain, where Flink runs one."""
    made = PlanStore(Workspace(tmp_path / "workspace"))
    made.publish(word_count_plan({"tm1": {"source": 1, "flatmap": 3, "count": 3}}), "2026-01-01T00:00:00Z")
    return made


@pytest.fixture
def planned(store: PlanStore, deployed: DeployedRepository, flink: FakeFlink) -> Callable[..., PlannedMerge]:
    def plan_it(**fields: Any) -> PlannedMerge:
        repository = DeploymentRepository.model_validate(deployed.block(**fields))
        with FlinkRest(flink.url) as rest:
            plan = store.get("wordcount", 1)
            return planned_merge(rest, plan, repository, job="wordcount", vertices=None, job_file=None)

    return plan_it


@pytest.fixture
def proposed(
    store: PlanStore, flink: FakeFlink, planned: Callable[..., PlannedMerge]
) -> Callable[..., tuple[Proposal, MergeWatch]]:
    """Proposes the plan and watches it; the clock says when the wait is over."""

    def propose_it(now: Callable[[], datetime] | None = None, **fields: Any) -> tuple[Proposal, MergeWatch]:
        proposal = propose(
            store, planned(**fields), flink=flink.url, flink_job="wordcount", merge_s=3600.0, observe_s=0.0
        )
        return proposal, MergeWatch(proposal, now=now or (lambda: proposal.begun))

    return propose_it


@pytest.mark.parametrize("delete", [False, True])
@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
def test_a_merge_a_squash_and_a_rebase_count_and_the_branch_may_be_deleted_with_it(
    proposed: Any, deployed: DeployedRepository, how: str, delete: bool
) -> None:
    proposal, watch = proposed()
    assert (proposal.target, proposal.branch, proposal.before) == ("main", BRANCH, None)
    assert proposal.commit == git(deployed.bare, "rev-parse", BRANCH)
    assert watch.look() == MergeLook("waiting", f"{BRANCH} is not merged into main yet")
    deployed.write("other.yaml", "of another job\n")
    assert watch.look().state == "waiting"
    deployed.merge(BRANCH, how, delete)
    head = git(deployed.bare, "rev-parse", "main")
    assert watch.look() == MergeLook("merged", f"main has wordcount@1 at commit {head[:12]}", head)


def test_the_branch_starts_from_the_target_which_need_not_be_the_default_branch(
    proposed: Any, deployed: DeployedRepository
) -> None:
    deployed.write("README.md", "released jobs\n", branch="main")
    git(deployed.bare, "branch", "production", "main")
    deployed.write("README.md", "jobs in work\n", branch="main")
    _, watch = proposed(target="production")
    assert deployed.read(BRANCH, "README.md") == "released jobs\n"
    deployed.merge(BRANCH)  # into main
    assert watch.look().sentence == f"{BRANCH} is not merged into production yet"
    git(deployed.bare, "update-ref", "refs/heads/production", BRANCH)
    assert watch.look().state == "merged"


def test_other_changes_of_the_manifest_are_no_matter(proposed: Any, deployed: DeployedRepository) -> None:
    deployed.write(FILE, MANIFEST)
    proposal, watch = proposed()
    assert proposal.before is not None
    assert (proposal.before.plan, proposal.before.tasks) == (None, {CHAIN: 1, OTHER: 5})
    deployed.edit(lambda text: text.replace("flink:1.18", "flink:1.18.1"))
    assert watch.look().state == "waiting"
    deployed.merge(BRANCH)
    deployed.edit(lambda text: text.replace(f"{CHAIN}:3,", f"{CHAIN}:3, ").replace(f"{OTHER}:5", f"{OTHER}:6"))
    text = deployed.read()
    assert "flink:1.18.1" in text and f"{OVERRIDES}: {CHAIN}:3, {OTHER}:6,{SOURCE}:1" in text
    assert watch.look().state == "merged"


def _state_other_tasks(text: str) -> str:
    return text.replace(f"{CHAIN}:3", f"{CHAIN}:4")


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        (
            lambda deployed: deployed.delete(BRANCH),
            f"the branch {BRANCH} was deleted, and main does not have wordcount@1",
        ),
        (
            lambda deployed: deployed.edit(_state_other_tasks, BRANCH),
            f"{FILE} in the branch {BRANCH} was changed: it has 4 tasks of 'flatmap -> count', not 3",
        ),
        (
            lambda deployed: deployed.edit(lambda text: text.replace("{", "{{{"), BRANCH),
            f"{FILE} in the branch {BRANCH} was changed: it cannot be compared ({FILE} in {BRANCH} is no YAML",
        ),
        (
            lambda deployed: deployed.edit(lambda text: text.replace(f"{CHAIN}:1", f"{CHAIN}:2")),
            f"{FILE} in main was changed otherwise: it names no plan, not wordcount@1",
        ),
        (
            lambda deployed: (deployed.merge(BRANCH), deployed.edit(_state_other_tasks)),
            f"{FILE} in main was changed otherwise: it has 4 tasks of 'flatmap -> count', not 3",
        ),
        (
            lambda deployed: deployed.edit(lambda text: text.replace("words   #", "words\n  annotations: {x: y}   #")),
            f"{BRANCH} is not merged into main yet",
        ),
        (
            lambda deployed: deployed.write(FILE, None),
            f"{FILE} in main was changed otherwise: it was removed",
        ),
        (
            lambda deployed: git(deployed.bare, "update-ref", "-d", "refs/heads/main"),
            "the branch 'main' is gone from ",
        ),
    ],
)
def test_what_will_not_be_merged_as_it_was_proposed_is_one_sentence(
    proposed: Any, deployed: DeployedRepository, act: Callable[[DeployedRepository], object], sentence: str
) -> None:
    deployed.write(FILE, MANIFEST)
    _, watch = proposed()
    act(deployed)
    look = watch.look()
    assert look.sentence.startswith(sentence)
    if not sentence.endswith("yet"):
        assert look.state == "ended" and look.sentence.endswith("; apply wordcount@1 again to propose it once more")


def test_the_wait_ends_when_its_time_is_up_and_the_branch_stays(proposed: Any, deployed: DeployedRepository) -> None:
    passed = timedelta(0)
    proposal, watch = proposed(now=lambda: proposal.begun + passed)
    passed, commit = timedelta(seconds=3599), git(deployed.bare, "rev-parse", BRANCH)
    assert watch.look().state == "waiting"
    passed = timedelta(seconds=3600)
    assert watch.look() == MergeLook(
        "ended",
        f"{BRANCH} is not merged into main yet after 3600 s; the branch stays as it is; apply wordcount@1 again to wait on",
    )
    assert git(deployed.bare, "rev-parse", BRANCH) == commit
    deployed.merge(BRANCH)
    assert watch.look().state == "merged", "late, but before it was looked"


def test_a_repository_that_does_not_answer_is_asked_again(proposed: Any, deployed: DeployedRepository) -> None:
    _, watch = proposed()
    away = deployed.bare.with_name("away.git")
    said: list[str] = []

    def come_and_go(_seconds: float) -> None:
        if len(said) == 1:
            deployed.bare.rename(away)
        elif away.exists():
            away.rename(deployed.bare)
            deployed.merge(BRANCH)

    assert await_merge(watch, said.append, come_and_go).state == "merged"
    assert [line.partition(" (git")[0] for line in said[:2]] == [
        f"{BRANCH} is not merged into main yet",
        f"the git repository '{deployed.bare}' cannot be read",
    ]


def test_a_newer_plan_ends_the_wait_unless_this_one_is_merged(proposed: Any, deployed: DeployedRepository) -> None:
    proposal, _ = proposed()
    watch = MergeWatch(proposal, obstacle=lambda: "wordcount@2 has taken its place", now=lambda: proposal.begun)
    assert watch.look().sentence.startswith("wordcount@2 has taken its place; ")
    deployed.merge(BRANCH)
    assert watch.look().state == "merged"


def test_a_plan_that_the_target_or_the_branch_has_makes_no_commit(
    proposed: Any, planned: Callable[..., PlannedMerge], deployed: DeployedRepository, flink: FakeFlink
) -> None:
    first, _ = proposed()
    again, _ = proposed()
    assert first.commit is not None and again.commit is None
    assert git(deployed.bare, "rev-parse", BRANCH) == first.commit
    deployed.merge(BRANCH, delete=True)
    stated, watch = proposed()
    assert (stated.is_stated, stated.commit, deployed.branches) == (True, None, ["main"])
    assert watch.look().state == "merged" and not planned().is_done
    flink.tasks[CHAIN] = 3
    assert planned().is_done and planned().difference == ""


def test_the_change_of_the_file_is_shown_beforehand(
    planned: Callable[..., PlannedMerge], deployed: DeployedRepository
) -> None:
    deployed.write(FILE, MANIFEST)
    assert [line for line in planned().difference.splitlines() if line[0] in "+-"] == [
        f"--- main:{FILE}",
        f"+++ {BRANCH}:{FILE}",
        "+  annotations:",
        "+    sluice/plan: wordcount@1",
        f"-    {OVERRIDES}: {CHAIN}:1,{OTHER}:5",
        f"+    {OVERRIDES}: {CHAIN}:3,{OTHER}:5,{SOURCE}:1",
    ]
    assert deployed.branches == ["main"]


def test_a_target_that_is_not_there_is_named(
    planned: Callable[..., PlannedMerge], deployed: DeployedRepository, tmp_path: Path
) -> None:
    with pytest.raises(
        InvalidInput, match=r"has no branch 'production'; correct 'target' in operations.apply.repository"
    ):
        planned(target="production")
    git(tmp_path, "init", "--quiet", "--bare", str(tmp_path / "empty.git"))
    with pytest.raises(InvalidInput, match=r"names no default branch; push a first commit, or state"):
        planned(url=str(tmp_path / "empty.git"))
