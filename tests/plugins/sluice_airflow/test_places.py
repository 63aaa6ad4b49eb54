"""Files that requests through Airflow's API may name: users of the API need no account on the machine."""

from pathlib import Path

import pytest

from models.errors import InvalidInput
from pipelines.store.workspace import Workspace
from sluice_airflow.places import check_places


@pytest.mark.parametrize(
    "asked",
    [
        {"job": "/etc/job.yaml"},
        {"jobs": ["{workspace}/a.yaml", "/etc/job.yaml"]},
        {"jobs": "{workspace}/a.yaml,/etc/job.yaml"},
        {"workloads": "{workspace}/w.csv, /etc/rates.csv"},
        {"flink": "/etc/cluster.yaml"},
    ],
)
def test_files_elsewhere_are_refused(asked: dict[str, object], tmp_path: Path) -> None:
    filled = {
        name: [one.format(workspace=tmp_path) for one in value]
        if isinstance(value, list)
        else str(value).format(workspace=tmp_path)
        for name, value in asked.items()
    }
    with pytest.raises(InvalidInput, match=r"must name a file in .*, but got '/etc/"):
        check_places(filled, Workspace(tmp_path))


@pytest.mark.parametrize("flink", ["http://127.0.0.1:8081", "connection:flink", "flink-local"])
def test_what_names_no_file_elsewhere_is_allowed(flink: str, tmp_path: Path) -> None:
    check_places(
        {"flink": flink, "jobs": f"nexmark-q1, {tmp_path}/a.yaml", "workloads": "steps:2"}, Workspace(tmp_path)
    )
