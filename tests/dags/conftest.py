"""The DAGs as Airflow loads them, and a workspace for their outputs."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG

from servers.airflow import RunningAirflow


def _load(root: Path) -> dict[str, DAG]:
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(str(root / "dags"))
    assert bag.import_errors == {}
    return dict(bag.dags)


@pytest.fixture(scope="session")
def dags(root: Path) -> dict[str, DAG]:
    """All DAGs."""
    return _load(root)


@pytest.fixture(scope="module")
def workspace_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace that the tests of one file share, as SLUICE_WORKSPACE."""
    folder = tmp_path_factory.mktemp("workspace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_WORKSPACE", str(folder))
        yield folder


@pytest.fixture(scope="module")
def run_dag(root: Path, airflow_home: Path, workspace_folder: Path) -> Callable[..., Any]:
    """Runs a DAG in this process with the given parameters, and returns the DAG run.

    Each run loads the DAG again, since a run's parameters become the defaults of its DAG object.
    """

    def run(name: str, **params: Any) -> Any:
        return _load(root)[name].test(run_conf=params)

    return run


@pytest.fixture(scope="module")
def running_airflow(
    tmp_path_factory: pytest.TempPathFactory, workspace_folder: Path, root: Path
) -> Iterator[RunningAirflow]:
    """Started here, stopped after the tests of one file; tasks use the file's workspace, and requests our test data."""
    folder = tmp_path_factory.mktemp("airflow")
    variables = {"SLUICE_FILES": str(root / "tests" / "data")}
    airflow = RunningAirflow(folder / "home", folder / "airflow.log", variables)
    try:
        airflow.log_in()
        yield airflow
    finally:
        airflow.stop()
