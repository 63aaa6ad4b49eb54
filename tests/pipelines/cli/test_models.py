"""`sluice models`: what it prints and how it ends."""

import getpass
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli import run as sluice
from pipelines.run import PipelineRun
from pipelines.stages.review import review
from pipelines.stages.select import select
from pipelines.store.workspace import Workspace

ExploredRun = Callable[..., PipelineRun]
Ask = Callable[..., tuple[int, str, str]]


def asking(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> Ask:
    def ask(*arguments: str) -> tuple[int, str, str]:
        code = sluice(["models", *arguments, "--workspace", workspace.url])
        said = capsys.readouterr()
        return code, said.out, said.err

    return ask


def review_two(explored: ExploredRun) -> None:
    """Version 1, with log, is the champion; version 2, with linear, is worse and stays challenger."""
    for name, model in (("best", "log"), ("worse", "linear")):
        run = explored(name, observations=18, model=model)
        select(run)
        review(run)


@pytest.fixture(scope="module")
def reviewed_workspace(
    tmp_path_factory: pytest.TempPathFactory,
    make_tracked_workspace: Callable[[Path], Workspace],
    explored_in: Callable[[Workspace], ExploredRun],
) -> Workspace:
    """Has two versions. For tests that change nothing."""
    workspace = make_tracked_workspace(tmp_path_factory.mktemp("models") / "workspace")
    review_two(explored_in(workspace))
    return workspace


@pytest.fixture
def ask(reviewed_workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> Ask:
    return asking(reviewed_workspace, capsys)


def document(ask: Ask, *arguments: str) -> Any:
    code, out, err = ask(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_an_empty_store_says_so(tracked_workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    ask = asking(tracked_workspace, capsys)
    assert document(ask, "list") == {"models": []}
    code, out, err = ask("list")
    assert (code, out) == (0, "")
    assert "no models in sqlite:///" in err


def test_list_shows_the_newest_first(ask: Ask) -> None:
    listed = document(ask, "list", "nexmark-q5")["models"]
    assert [(m["version"], m["aliases"], m["review"]) for m in listed] == [
        (2, ["challenger"], "rejected"),
        (1, ["champion"], "approved by rule"),
    ]
    assert listed[0]["selection"]["model"] == "linear"
    code, out, _err = ask("list")
    assert code == 0
    assert out.index("nexmark-q5@2") < out.index("nexmark-q5@1")


@pytest.mark.parametrize(
    ("reference", "version"),
    [("nexmark-q5", 1), ("nexmark-q5@2", 2), ("nexmark-q5@v2", 2), ("nexmark-q5@challenger", 2)],
)
def test_show_takes_the_champion_unless_told(ask: Ask, reference: str, version: int) -> None:
    assert document(ask, "show", reference)["version"] == version
    code, out, _err = ask("show", reference)
    assert code == 0
    assert out.startswith(f"nexmark-q5@{version}")
    assert "LOOCV RMSE" in out


def test_people_approve_and_reject_and_who_and_why_is_kept(
    explored: ExploredRun, tracked_workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    review_two(explored)
    ask = asking(tracked_workspace, capsys)
    approved = document(
        ask, "approve", "nexmark-q5@2", "--reason", "StreamBed published it with log", "--by", "Ada Lovelace"
    )
    assert (approved["version"], approved["aliases"]) == (2, ["challenger", "champion"])
    assert (approved["review"], approved["reviewed_by"]) == ("approved", "Ada Lovelace")
    assert approved["review_reason"] == "StreamBed published it with log"
    head = approved["description"].splitlines()[0]
    assert head.startswith("**Approved by Ada Lovelace on 20")
    assert head.endswith(": StreamBed published it with log**")
    assert document(ask, "show", "nexmark-q5")["version"] == 2

    code, out, err = ask("reject", "nexmark-q5@2", "--reason", "no")
    assert (code, out) == (2, "")
    assert "models:/nexmark-q5/2 is the champion, which plans are made with, so it cannot be rejected" in err
    code, out, _err = ask("reject", "nexmark-q5@1", "--reason", "too few points")
    assert (code, out) == (0, "models:/nexmark-q5/1 is rejected; plans of nexmark-q5 keep to the champion\n")
    rejected = document(ask, "show", "nexmark-q5@1")
    assert (rejected["review"], rejected["review_reason"]) == ("rejected", "too few points")
    assert rejected["reviewed_by"] == getpass.getuser()
    assert document(ask, "show", "nexmark-q5")["version"] == 2


def test_a_model_that_was_changed_is_neither_shown_nor_promoted(
    explored: ExploredRun, tracked_workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    review_two(explored)
    ask = asking(tracked_workspace, capsys)
    for path in tracked_workspace.local_folder("mlflow").rglob("model.skops"):
        path.write_bytes(b"")
    for arguments in (("show", "nexmark-q5@2"), ("approve", "nexmark-q5@2", "--reason", "better")):
        code, out, err = ask(*arguments)
        assert (code, out) == (1, "")
        assert err.startswith("failed: models:/nexmark-q5/2 is not what was registered")
    assert document(ask, "list")["models"][1]["aliases"] == ["champion"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "nexmark-q5@9"), "job 'nexmark-q5' has no model version '9'; known versions: 2, 1"),
        (("show", "q99"), "job 'q99' has no champion; its versions: none"),
        (("show", "a b"), "a model is named JOB or JOB@VERSION"),
        (("list", "q99"), "there is no model of the job 'q99'; jobs that have one: nexmark-q5"),
        (("approve", "nexmark-q5", "--reason", "x"), "a decision must name a version"),
        (("approve", "nexmark-q5@9", "--reason", "x"), "job 'nexmark-q5' has no model version '9'"),
        (("reject", "nexmark-q5@2", "--reason", " \n"), "the reason of a decision must have 1 to 1000 characters"),
        (("reject", "nexmark-q5@2", "--reason", "x", "--by", "\t"), "the name of who decides must have"),
        (("approve", "nexmark-q5@2"), "Missing option '--reason'"),
    ],
)
def test_unusable_references_end_with_2_and_say_what_there_is(
    ask: Ask, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = ask(*arguments)
    assert (code, out) == (2, "")
    assert message in err
