"""Sluice's assets as OpenLineage datasets: by hand, and in the events of a DAG run."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from airflow.sdk import Asset

from sluice_airflow.assets import MODEL, PLAN
from sluice_airflow.lineage import SCHEME, dataset_of

DAG = """
from airflow.sdk import dag, task
from sluice_airflow.assets import MODEL, PLAN

@dag(schedule=None)
def planning():
    @task(inlets=[MODEL], outlets=[PLAN])
    def publish(outlet_events=None):
        outlet_events[PLAN].extra = {"uri": "s3://plans/w/plans/q5/v000001.json"}

    publish()

made = planning()
"""
RUN = """
import sys
from airflow.dag_processing.dagbag import DagBag

bag = DagBag(sys.argv[1])
assert bag.import_errors == {}, bag.import_errors
assert bag.dags["planning"].test().state == "success"
"""


@pytest.mark.parametrize(
    ("uri", "namespace", "name"),
    [
        (None, "x-sluice", "plan"),
        ("file:///w/plans/q5/v000001.json", "file", "/w/plans/q5/v000001.json"),
        ("/w/plans/q5/v000001.json", "file", "/w/plans/q5/v000001.json"),
        ("s3://bucket/w/plans/q5/v000001.json", "s3://bucket", "w/plans/q5/v000001.json"),
    ],
)
def test_an_asset_is_the_artifact_that_its_event_names(uri: str | None, namespace: str, name: str) -> None:
    asset = Asset(name=PLAN.name, uri=PLAN.uri, extra={} if uri is None else {"uri": uri})
    made = dataset_of(asset)
    assert (made.namespace, made.name) == (namespace, name)
    assert MODEL.uri.startswith(f"{SCHEME}://")


@pytest.mark.slow
def test_the_events_of_a_run_name_model_and_plan(tmp_path: Path) -> None:
    """A run in an Airflow of its own, whose provider writes its events to a file."""
    dags, events = tmp_path / "dags", tmp_path / "events.jsonl"
    dags.mkdir()
    (dags / "planning.py").write_text(DAG)
    transport = {"type": "file", "log_file_path": str(events), "append": True}
    variables = {
        **os.environ,
        "AIRFLOW_HOME": str(tmp_path / "home"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{tmp_path}/airflow.db",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(transport),
    }
    for command in (["-m", "airflow", "db", "migrate"], ["-c", RUN, str(dags)]):
        done = subprocess.run([sys.executable, *command], env=variables, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr
    read = [json.loads(line) for line in events.read_text().splitlines()]
    (ended,) = [one for one in read if one["eventType"] == "COMPLETE" and one["job"]["name"] == "planning.publish"]
    assert [(one["namespace"], one["name"]) for one in ended["inputs"]] == [("x-sluice", "model")]
    assert [(one["namespace"], one["name"]) for one in ended["outputs"]] == [
        ("x-sluice", "plan"),
        ("s3://plans", "w/plans/q5/v000001.json"),
    ]
