"""A plan in a branch of a real git repository."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from flink.server import word_count_plan
from on_kubernetes.deployed_repository import FILE, MANIFEST, git
from on_kubernetes.deployed_resource import CHAIN, OTHER, OVERRIDES, SOURCE
from pipelines.apply.gitops.git.branch import commit_file
from pipelines.cli import run
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A bare repository whose default branch has one file, and a checkout of it with a change that is not committed."""
    bare, checkout = tmp_path / "flink-jobs.git", tmp_path / "checkout"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", str(bare))
    git(tmp_path, "clone", "--quiet", str(bare), str(checkout))
    git(checkout, "switch", "--quiet", "--orphan", "main")
    (checkout / "README.md").write_text("jobs\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "Begin")
    git(checkout, "push", "--quiet", "origin", "main")
    (checkout / "README.md").write_text("unsaved\n")
    return bare


@pytest.fixture
def export(repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Exports version 1 (two tasks of the chain) or 2 (three) of word count into the branch `plans`."""
    workspace = Workspace(tmp_path / "workspace")
    store = PlanStore(workspace)
    for tasks in (2, 3):
        content = word_count_plan({"tm1": {"source": 1, "flatmap": tasks, "count": tasks}})
        store.publish(content, f"2026-01-0{tasks}T00:00:00Z")
    vertices = tmp_path / "vertices.yaml"
    vertices.write_text(yaml.safe_dump({"source": SOURCE, "flatmap": CHAIN, "count": CHAIN}))

    def call(*arguments: str, version: int = 1, to: str | None = None) -> tuple[int, str, str]:
        command = [
            "plans",
            "export",
            f"wordcount@{version}",
            "--format",
            "flinkdeployment",
            "--workspace",
            workspace.url,
        ]
        code = run(
            [
                *command,
                "--git",
                to or str(repository),
                "--branch",
                "plans",
                "--path",
                FILE,
                "--vertices",
                str(vertices),
                *arguments,
            ]
        )
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_each_version_is_a_commit_with_the_difference_as_its_message(export: Call, repository: Path) -> None:
    assert export()[0] == 0
    assert git(repository, "log", "--format=%B", "-1", "plans").splitlines() == [
        "Plan wordcount@1 for 1,500 records/s",
        "",
        "The first plan of wordcount here.",
    ]
    code, out, _ = export("--json", version=2)
    assert code == 0 and json.loads(out)["commit"] == git(repository, "rev-parse", "plans")
    assert git(repository, "log", "--format=%B", "-1", "plans").splitlines() == [
        "Plan wordcount@2 for 1,500 records/s",
        "",
        "From wordcount@1 for 1,500 records/s:",
        "- flatmap: 2 -> 3 tasks",
        "- count: 2 -> 3 tasks",
        "- task slots: 4 -> 6",
        "- 2 tasks start on another worker, 0 stop",
    ]
    assert git(repository, "log", "--format=%s", "plans").splitlines()[2:] == ["Begin"]
    assert git(repository, "diff", "--name-only", "main", "plans") == FILE
    document = yaml.safe_load(git(repository, "show", f"plans:{FILE}"))
    assert document["metadata"]["annotations"] == {"sluice/plan": "wordcount@2"}


def test_the_same_plan_twice_makes_no_second_commit(export: Call, repository: Path) -> None:
    assert export()[0] == 0
    first = git(repository, "rev-parse", "plans")
    code, _, err = export()
    assert code == 0 and "branch plans has this plan already" in err
    assert git(repository, "rev-parse", "plans") == first


def test_no_working_tree_and_no_other_branch_is_touched(export: Call, repository: Path, tmp_path: Path) -> None:
    main, checkout = git(repository, "rev-parse", "main"), tmp_path / "checkout"
    assert export(to=str(checkout))[0] == 0
    assert (checkout / "README.md").read_text() == "unsaved\n"
    assert git(checkout, "status", "--porcelain") == "M README.md"
    assert git(checkout, "branch", "--show-current") == "main" and git(checkout, "show", f"plans:{FILE}")
    assert git(repository, "rev-parse", "main") == main


def test_a_push_by_somebody_else_meanwhile_is_not_overwritten(repository: Path) -> None:
    def meanwhile(former: str | None) -> str:
        commit_file(str(repository), "plans", "theirs.yaml", lambda _: "theirs\n", lambda _: "Theirs")
        return "Ours"

    commit_file(str(repository), "plans", FILE, lambda _: "first\n", lambda _: "First")
    with pytest.raises(Exception, match=r"did not take the commit on 'plans', so nothing was changed"):
        commit_file(str(repository), "plans", FILE, lambda _: "second\n", meanwhile)
    assert git(repository, "log", "--format=%s", "plans").splitlines() == ["Theirs", "First", "Begin"]


def test_an_empty_repository_gets_its_first_commit(export: Call, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--bare", str(tmp_path / "empty.git"))
    assert export(to=str(tmp_path / "empty.git"))[0] == 0
    assert git(tmp_path / "empty.git", "log", "--format=%s", "plans") == "Plan wordcount@1 for 1,500 records/s"


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--git", "https://ann:secret@example.com/x.git"], 2, "must not hold a password"),
        (["--git", "--upload-pack=touch"], 2, "--git must be an address"),
        (["--git", "missing.git"], 1, "the git repository 'missing.git' cannot be read"),
        (["--format", "overrides"], 2, "--git takes --format flinkdeployment or"),
        (["--path", "README.md"], 2, "neither a FlinkDeployment nor an export of Sluice"),
        (["--branch", "a..b"], 2, "is no name of a branch"),
        (["--path", "../outside.yaml"], 2, "--path must be a file inside the repository"),
        (["--path", ".git/hooks/pre-commit"], 2, "--path must be a file inside the repository"),
        (["--path", "README.md/plan.yaml"], 1, "cannot be written"),
    ],
)
def test_unusable_arguments_are_named_and_change_nothing(
    export: Call, repository: Path, arguments: list[str], code: int, reason: str
) -> None:
    found, out, err = export(*arguments)
    assert (found, out) == (code, "") and reason in " ".join(err.split()) and "secret" not in err
    assert git(repository, "branch", "--format=%(refname:short)") == "main"


def test_a_manifest_keeps_its_comments_and_form_and_gets_the_plan_alone(export: Call, repository: Path) -> None:
    commit_file(str(repository), "plans", FILE, lambda _: MANIFEST, lambda _: "Deploy words")
    assert export()[0] == 0
    lines = git(repository, "show", f"plans:{FILE}").splitlines()
    added = ["  annotations:", "    sluice/plan: wordcount@1", f"    {OVERRIDES}: {CHAIN}:2,{OTHER}:5,{SOURCE}:1"]
    removed = [f"    {OVERRIDES}: {CHAIN}:1,{OTHER}:5"]
    assert [line for line in lines if line not in MANIFEST.splitlines()] == added
    assert [line for line in MANIFEST.splitlines() if line not in lines] == removed
    first = git(repository, "rev-parse", "plans")
    assert export()[0] == 0 and git(repository, "rev-parse", "plans") == first
    assert export("--format", "flinkdeployment-resources", version=2)[0] == 0
    document = next(yaml.safe_load_all(git(repository, "show", f"plans:{FILE}")))
    assert document["spec"]["taskManager"] == {"resource": {"cpu": 2, "memory": "900m"}}
    assert document["spec"]["flinkConfiguration"][OVERRIDES] == f"{CHAIN}:2,{OTHER}:5,{SOURCE}:1"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (MANIFEST.replace("\n", "\r\n"), "cannot be edited without reformatting other lines"),
        (MANIFEST + "---\n" + MANIFEST, "has 2 FlinkDeployments and 0 named 'wordcount'"),
        (
            MANIFEST.replace("flinkConfiguration:", "flinkConfiguration:\n    job.autoscaler.enabled: 'true'"),
            "autoscaler",
        ),
    ],
)
def test_a_manifest_that_cannot_be_edited_safely_is_refused(
    export: Call, repository: Path, text: str, reason: str
) -> None:
    commit_file(str(repository), "plans", FILE, lambda _: text, lambda _: "Deploy words")
    before = git(repository, "rev-parse", "plans")
    code, _, err = export()
    assert code == 2 and reason in " ".join(err.split())
    assert git(repository, "rev-parse", "plans") == before
