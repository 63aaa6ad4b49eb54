"""Where MLflow keeps its runs, and what it must not do."""

import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy

from models.errors import InvalidInput, SluiceError
from pipelines.registry.tracking import (
    DATABASE,
    TRACKING_VARIABLE,
    Tracking,
    create_database,
    mlflow_errors,
    open_tracking,
    without_password,
)
from pipelines.store.workspace import Workspace


def test_runs_and_artifacts_lie_in_the_workspace(tracked_workspace: Workspace) -> None:
    tracking = open_tracking(tracked_workspace)
    folder = tracked_workspace.local_folder("mlflow")
    experiment = tracking.client.get_experiment(tracking.experiment("q5"))
    assert tracking.uri == f"sqlite:///{folder / 'mlflow.db'}"
    assert experiment.name == "sluice/q5"
    assert experiment.artifact_location == f"file://{folder}/artifacts/q5"


def test_a_named_server_wins(tracked_workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TRACKING_VARIABLE, "http://127.0.0.1:5000")
    assert open_tracking(tracked_workspace) == Tracking("http://127.0.0.1:5000", None)


def test_a_database_of_ones_own_keeps_artifacts_in_the_workspace(
    tracked_workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(TRACKING_VARIABLE, f"sqlite:///{tmp_path}/own.db")
    assert open_tracking(tracked_workspace).artifacts == tracked_workspace.uri("mlflow", "artifacts")


def test_a_remote_workspace_needs_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRACKING_VARIABLE, raising=False)
    with pytest.raises(InvalidInput, match="set MLFLOW_TRACKING_URI"):
        open_tracking(Workspace("memory://tracking"))


def test_an_experiment_is_made_once_and_restored(tracked_workspace: Workspace) -> None:
    tracking = open_tracking(tracked_workspace)
    made = tracking.experiment("q5")
    tracking.client.delete_experiment(made)
    assert tracking.experiment("q5") == made
    assert tracking.client.get_experiment(made).lifecycle_stage == "active"


def test_a_workspace_that_was_moved_is_refused(tracked_workspace: Workspace, tmp_path: Path) -> None:
    open_tracking(tracked_workspace).experiment("q5")
    (tmp_path / "workspace").rename(tmp_path / "moved")
    with pytest.raises(SluiceError, match="move the workspace back"):
        open_tracking(Workspace(tmp_path / "moved")).experiment("q5")


def test_threads_that_make_the_database_make_one(tmp_path: Path) -> None:
    path = tmp_path / DATABASE
    with ThreadPoolExecutor(2) as pool:
        for made in [pool.submit(create_database, path) for _ in range(2)]:
            made.result()
    assert [p.name for p in tmp_path.iterdir()] == [DATABASE]
    assert Tracking(f"sqlite:///{path}", None).client.search_experiments() != []


def test_a_process_that_loses_the_race_keeps_the_winner(
    tmp_path: Path, migrated_database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow.store.db.utils as database

    path = tmp_path / DATABASE

    def finish_second(engine: sqlalchemy.Engine) -> None:
        with engine.begin() as connection:
            connection.exec_driver_sql("create table experiments (id integer)")
        shutil.copyfile(migrated_database, path)

    monkeypatch.setattr(database, "_initialize_tables", finish_second)
    create_database(path)
    assert [p.name for p in tmp_path.iterdir()] == [DATABASE]
    assert path.read_bytes() == migrated_database.read_bytes()


@pytest.mark.slow
def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        uri = f"http://me:secret@127.0.0.1:{taken.getsockname()[1]}"
        tracking = Tracking(uri, None)
        with pytest.raises(SluiceError, match="check that it is there") as raised, mlflow_errors(tracking):
            tracking.client.get_experiment("1")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("http://me:secret@host:5000/x", "http://host:5000/x"),
        ("http://host:5000", "http://host:5000"),
        ("sqlite:////tmp/a@b.db", "sqlite:////tmp/a@b.db"),
    ],
)
def test_passwords_are_left_out(uri: str, shown: str) -> None:
    assert without_password(uri) == shown


@pytest.mark.slow
def test_the_first_use_says_nothing_and_sends_nothing(tmp_path: Path) -> None:
    """In a fresh process, where nothing has set MLflow up yet."""
    code = f"""
import sys
from pipelines.registry.tracking import open_tracking
from pipelines.store.workspace import Workspace
assert "mlflow" not in sys.modules
tracking = open_tracking(Workspace({str(tmp_path / "w")!r}))
tracking.experiment("q5")
from mlflow.telemetry.client import get_telemetry_client
assert get_telemetry_client() is None
"""
    unset = (TRACKING_VARIABLE, "MLFLOW_DISABLE_TELEMETRY", "CI", "PYTEST_CURRENT_TEST", "MLFLOW_TESTING")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["w"], "nothing is left in the current folder"
