"""Artifacts are found by key, made once, and never used when damaged."""

import json
import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from models.capacity.observation import Budget
from models.errors import InvalidInput, SluiceError
from pipelines.store.digests import digest
from pipelines.store.workspace import Damaged, Missing, Workspace

BUDGET = Budget(task_slots=4, memory_mb=2048)


# Keys and places


def test_bytes_come_back_by_key(workspace: Workspace) -> None:
    workspace.write_bytes("runs/q5/a.json", b"one")
    workspace.write_bytes("runs/q5/a.json", b"two")
    assert workspace.read_bytes("runs/q5/a.json") == b"two"
    assert workspace.exists("runs/q5/a.json")
    assert not workspace.exists("runs/q5")
    assert not workspace.exists("runs/q5/b.json")


def test_the_url_opens_the_same_workspace_again(workspace: Workspace) -> None:
    workspace.write_bytes("a/b", b"x")
    assert Workspace(workspace.url).read_bytes("a/b") == b"x"
    assert workspace.uri("a", "b") == workspace.uri("a/b") == f"{workspace.url}/a/b"
    assert workspace.uri() == workspace.url


def test_list_is_sorted_deep_and_of_one_folder(workspace: Workspace) -> None:
    for key in ("b/2", "b/1", "b/c/3", "bb/4", "a"):
        workspace.write_bytes(key, b"")
    assert workspace.list() == ["a", "b/1", "b/2", "b/c/3", "bb/4"]
    assert workspace.list("b") == workspace.list("b/") == ["b/1", "b/2", "b/c/3"]
    assert workspace.list("nothing/here") == []


@pytest.mark.parametrize(
    "key",
    ["", "/etc/passwd", "../secret", "a/../../b", "a//b", "a/", "./a", "a/.hidden", "a\\b", "a\nb", "é", "a b", "~/a"],
)
def test_a_key_cannot_leave_the_workspace_or_hold_odd_characters(workspace: Workspace, key: str) -> None:
    uses: list[Callable[[], object]] = [
        lambda: workspace.read_bytes(key),
        lambda: workspace.write_bytes(key, b"x"),
        lambda: workspace.create_bytes(key, b"x"),
        lambda: workspace.exists(key),
        lambda: workspace.delete(key),
        lambda: workspace.uri(key),
    ]
    for use in uses:
        with pytest.raises(InvalidInput, match="a key must be a relative path"):
            use()


def test_a_missing_artifact_is_named(workspace: Workspace) -> None:
    with pytest.raises(Missing, match=r"runs/x\.json does not exist"):
        workspace.read_bytes("runs/x.json")
    with pytest.raises(FileNotFoundError):
        workspace.read("runs/x.json", Budget)


def test_deleting_twice_is_no_error(workspace: Workspace) -> None:
    workspace.write_bytes("a", b"x")
    workspace.delete("a")
    workspace.delete("a")
    assert workspace.list() == []


def test_the_place_comes_from_the_variable_or_else_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    assert Workspace().url == f"file://{tmp_path}/.sluice/workspace"
    monkeypatch.setenv("SLUICE_WORKSPACE", str(tmp_path / "elsewhere"))
    assert Workspace().url == f"file://{tmp_path}/elsewhere"
    assert Workspace("here").url == f"file://{tmp_path}/here"


def test_an_unknown_protocol_or_a_file_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nosuch"):
        Workspace("nosuch://bucket/folder")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="is a file"):
        Workspace(tmp_path / "file")


def test_a_local_folder_is_made_and_only_local_workspaces_have_one(local: Workspace, tmp_path: Path) -> None:
    assert local.local_folder("mlflow", "artifacts") == tmp_path / "mlflow" / "artifacts"
    assert (tmp_path / "mlflow" / "artifacts").is_dir()
    with pytest.raises(SluiceError, match="memory://elsewhere"):
        Workspace("memory://elsewhere").local_folder("mlflow")


# Documents and tables


def test_documents_come_back_equal_and_end_with_a_line_feed(workspace: Workspace) -> None:
    workspace.write("budget.json", BUDGET)
    assert workspace.read("budget.json", Budget) == BUDGET
    assert workspace.read_bytes("budget.json").endswith(b"}\n")


@pytest.mark.parametrize(
    "content", [b"", b'{"task_slots": 4, "memo', b'{"task_slots": 0, "memory_mb": 1}', b"\xff\xfe"]
)
def test_a_damaged_document_is_named(workspace: Workspace, content: bytes) -> None:
    workspace.write_bytes("runs/budget.json", content)
    with pytest.raises(Damaged, match=r"runs/budget\.json"):
        workspace.read("runs/budget.json", Budget)


def test_tables_come_back_equal_without_columns_from_the_folder_names(workspace: Workspace) -> None:
    table = pa.table({"task": pa.array([1, 2], pa.int64()), "rate": [1.5, None]})
    workspace.write_table("samples/job=q5/run=r1/samples.parquet", table)
    assert workspace.read_table("samples/job=q5/run=r1/samples.parquet").equals(table)


def test_a_truncated_table_is_named(workspace: Workspace) -> None:
    workspace.write_table("samples/t.parquet", pa.table({"x": list(range(100))}))
    workspace.write_bytes("samples/t.parquet", workspace.read_bytes("samples/t.parquet")[:-20])
    with pytest.raises(Damaged, match=r"samples/t\.parquet"):
        workspace.read_table("samples/t.parquet")


# Once


class Maker:
    """Makes a budget, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> Budget:
        self.calls += 1
        return Budget(task_slots=self.calls, memory_mb=1024)


def test_once_makes_an_artifact_once_for_the_same_inputs(workspace: Workspace) -> None:
    make = Maker()
    first = workspace.once("runs/a.json", {"job": "1a", "cluster": "2b"}, Budget, make)
    again = workspace.once("runs/a.json", {"cluster": "2b", "job": "1a"}, Budget, make)
    assert (first, make.calls) == (again, 1)
    stored = json.loads(workspace.read_bytes("runs/a.json"))
    assert stored == {
        "schema_version": 1,
        "inputs": {"job": "1a", "cluster": "2b"},
        "digest": digest(first),
        "output": {"task_slots": 1, "memory_mb": 1024.0},
    }
    assert workspace.read_output("runs/a.json", Budget) == first


@pytest.mark.parametrize("inputs", [{"job": "other"}, {"job": "1a", "more": "x"}, {}])
def test_once_makes_it_again_when_the_inputs_change(workspace: Workspace, inputs: dict[str, str]) -> None:
    make = Maker()
    workspace.once("runs/a.json", {"job": "1a"}, Budget, make)
    assert workspace.once("runs/a.json", inputs, Budget, make).task_slots == 2
    assert workspace.once("runs/a.json", inputs, Budget, make).task_slots == 2


def test_an_output_from_other_inputs_is_none_and_nothing_is_made(workspace: Workspace) -> None:
    assert workspace.output_from("runs/a.json", {"job": "1a"}, Budget) is None
    first = workspace.once("runs/a.json", {"job": "1a"}, Budget, Maker())
    assert workspace.output_from("runs/a.json", {"job": "1a"}, Budget) == first
    assert workspace.output_from("runs/a.json", {"job": "other"}, Budget) is None
    workspace.write_bytes("runs/a.json", b"{")
    assert workspace.output_from("runs/a.json", {"job": "1a"}, Budget) is None
    assert workspace.read_bytes("runs/a.json") == b"{"


DAMAGES: list[Callable[[bytes], bytes]] = [
    lambda content: content[:-30],
    lambda content: content.replace(b'"memory_mb": 1024.0', b'"memory_mb": 4096.0'),
    lambda content: content.replace(b'"memory_mb"', b'"memory"'),
    lambda content: b"",
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_once_makes_a_damaged_artifact_again_and_says_so(
    workspace: Workspace, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    make = Maker()
    workspace.once("runs/a.json", {"job": "1a"}, Budget, make)
    workspace.write_bytes("runs/a.json", damage(workspace.read_bytes("runs/a.json")))
    with pytest.raises(Damaged):
        workspace.read_output("runs/a.json", Budget)
    with caplog.at_level(logging.WARNING):
        assert workspace.once("runs/a.json", {"job": "1a"}, Budget, make).task_slots == 2
    assert "runs/a.json" in caplog.text and "making it again" in caplog.text
    assert workspace.once("runs/a.json", {"job": "1a"}, Budget, make).task_slots == 2


def test_an_artifact_of_an_older_format_is_made_again(workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    output = {"slots": 3}
    old = {"schema_version": 1, "inputs": {"job": "1a"}, "digest": digest(output), "output": output}
    workspace.write_bytes("runs/a.json", json.dumps(old).encode())
    assert workspace.once("runs/a.json", {"job": "1a"}, Budget, Maker()).task_slots == 1
    assert "'slots' is not known" in caplog.text


def test_when_making_fails_nothing_is_stored(workspace: Workspace) -> None:
    def fail() -> Budget:
        raise SluiceError("the testbed is gone")

    with pytest.raises(SluiceError, match="the testbed is gone"):
        workspace.once("runs/a.json", {}, Budget, fail)
    assert not workspace.exists("runs/a.json")
