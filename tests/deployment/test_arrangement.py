"""docker-compose.yml as processes of this machine: a plan and a replan through Airflow's REST API, by all the servers.

The scheduler is killed while the plan is measured, and again in the replan, with all that it runs, as the end of its
container would.
"""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from pipelines.store.plans import PlanStore
from pipelines.store.samples import samples_key
from pipelines.store.workspace import Workspace
from servers.arrangement import Arrangement
from servers.postgres import programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(programs() is None, reason="PostgreSQL is not installed; apt-get install postgresql"),
]

JOB = "nexmark-q1"
SMALL = {"job": JOB, "rate": 400_000.0, "max_measurements": 3, "max_task_slots": 12}
SIZES = {
    "SPARK_DAEMON_MEMORY": "128m",
    "SLUICE_SPARK_DRIVER_MEMORY": "512m",
    "JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    # A scheduler that was killed is known as dead after this, and looked for so often: by default 30 and 300 s.
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "5",
}
PLAN_S = 1200.0


@pytest.fixture(scope="module")
def arrangement(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arrangement]:
    folder = tmp_path_factory.mktemp("arrangement")
    with Arrangement(root, folder, SIZES) as started:
        for name in ("prometheus.yml", "alerts.yml"):
            settings = (root / "docker" / "prometheus" / name).read_text()
            started.write_settings(settings, "prometheus", f"/etc/prometheus/{name}")
        monitoring = ["prometheus"] if shutil.which("prometheus") else []
        started.start("airflow-scheduler", "airflow-dag-processor", "airflow-triggerer", *monitoring)
        yield started


class Api:
    """Airflow's REST API, as its administrator."""

    def __init__(self, arrangement: Arrangement) -> None:
        self._url = arrangement.url("airflow-api-server", 8080)
        account = {"username": "admin", "password": arrangement.secrets["AIRFLOW_ADMIN_PASSWORD"]}
        self._headers = {"Content-Type": "application/json"}
        self._headers["Authorization"] = f"Bearer {self.call('POST', '/auth/token', account)['access_token']}"

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)

    def start(self, dag: str, conf: dict[str, Any]) -> str:
        """Trigger a DAG; returns the path of its run. The run of its schedule, which begins at once, has ended before it."""
        wait_for(lambda: self.known(dag), f"Airflow does not know the DAG {dag}")
        runs = f"/api/v2/dags/{dag}/dagRuns"
        self.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})
        (scheduled,) = wait_for(lambda: self.call("GET", runs)["dag_runs"], f"the schedule of {dag} started no run")
        assert scheduled["run_type"] == "scheduled"
        assert self.end(f"{runs}/{quote(scheduled['dag_run_id'])}") == "success", "without a plan it has nothing to do"
        asked = self.call("POST", runs, {"conf": conf, "logical_date": None})["dag_run_id"]
        return f"{runs}/{quote(asked)}"

    def end(self, run: str) -> str:
        """Wait for a run's end; returns the state it ended in."""

        def ended() -> str | None:
            state = str(self.call("GET", run)["state"])
            return state if state in ("success", "failed") else None

        return str(wait_for(ended, f"{run} never ended"))

    def known(self, dag: str) -> bool:
        return any(found["dag_id"] == dag for found in self.call("GET", "/api/v2/dags?limit=100")["dags"])

    def tasks(self, run: str) -> dict[str, tuple[str, int]]:
        """State, and how often it was tried, of a run's tasks."""
        found = self.call("GET", f"{run}/taskInstances")["task_instances"]
        return {task["task_id"]: (task["state"], task["try_number"]) for task in found}


def wait_for(look: Callable[[], Any], otherwise: str, seconds: float = PLAN_S) -> Any:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.5)
    raise AssertionError(f"{otherwise} within {seconds:g} s")


@pytest.fixture(scope="module")
def api(arrangement: Arrangement) -> Api:
    return Api(arrangement)


@pytest.fixture(scope="module")
def workspace(arrangement: Arrangement) -> Workspace:
    return Workspace(arrangement.volume("workspace"))


def get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)


def _measured(workspace: Workspace) -> dict[str, int]:
    """When each measurement was written. One whose samples are there without its observation was interrupted between both
    and does not count: it is measured again.
    """
    folder = workspace.local_folder()
    observations = list(folder.glob("runs/*/*/observations/*.json"))
    samples = [folder / samples_key(JOB, f"{file.parents[1].name}-{file.stem}") for file in observations]
    return {str(file): file.stat().st_mtime_ns for file in (*observations, *samples)}


def test_a_plan_is_made_through_the_rest_api_though_the_scheduler_is_killed_in_mid_task(
    arrangement: Arrangement, api: Api, workspace: Workspace
) -> None:
    run = api.start("capacity_plan", SMALL)
    observed = f"runs/{JOB}"
    wait_for(lambda: [key for key in workspace.list(observed) if "/observations/" in key], "nothing was measured")
    arrangement.kill("airflow-scheduler")
    measured = _measured(workspace)
    arrangement.start("airflow-scheduler")
    assert api.end(run) == "success"

    tasks = api.tasks(run)
    assert {task: tries for task, (_, tries) in tasks.items() if tries > 1} == {"explore": 2}
    # The rule approves the model alone, and no other job needs new measurements.
    assert {task: state for task, (state, _) in tasks.items() if state != "success"} == {"ask_again": "skipped"}
    assert measured.items() < _measured(workspace).items(), "what was measured is not measured again"
    assert PlanStore(workspace).versions(JOB) == [1]
    plan = PlanStore(workspace).current(JOB)
    assert (plan.target_rate, plan.lineage.trigger) == (SMALL["rate"], "plan")


def test_features_came_from_the_spark_cluster(arrangement: Arrangement) -> None:
    assert "Registered app sluice" in arrangement.log("spark-master").read_text()


def test_the_model_is_in_mlflow_on_postgresql_and_its_file_with_the_server(arrangement: Arrangement) -> None:
    url = f"{arrangement.url('mlflow', 5000)}/api/2.0/mlflow/registered-models/alias?name={JOB}&alias=champion"
    assert get(url)["model_version"]["version"] == "1"
    dump = arrangement.dump("mlflow")
    assert JOB in dump and "champion" in dump
    assert list(arrangement.volume("mlflow").rglob("model.skops"))


def test_an_event_through_the_rest_api_makes_the_next_version_though_the_scheduler_is_killed_in_mid_task(
    arrangement: Arrangement, api: Api, workspace: Workspace
) -> None:
    wait_for(lambda: api.known("replan"), "Airflow does not know the DAG replan")
    api.call("PATCH", "/api/v2/dags/replan", {"is_paused": False})
    (asset,) = api.call("GET", "/api/v2/assets?name_pattern=sluice-rate-change")["assets"]
    event = {"asset_id": asset["id"], "extra": {"job": JOB, "rate": 2 * SMALL["rate"]}}
    api.call("POST", "/api/v2/assets/events", event)

    runs = "/api/v2/dags/replan/dagRuns"
    (asked,) = wait_for(lambda: api.call("GET", runs)["dag_runs"], "the event started no run")
    assert asked["run_type"] == "asset_triggered"
    run = f"{runs}/{quote(asked['dag_run_id'])}"
    wait_for(lambda: "running" in {state for state, _ in api.tasks(run).values()}, "no task of the replan ever ran")
    arrangement.kill("airflow-scheduler")
    assert api.call("GET", run)["state"] == "running"
    arrangement.start("airflow-scheduler")

    assert api.end(run) == "success"
    assert PlanStore(workspace).versions(JOB) == [1, 2]
    plan = PlanStore(workspace).current(JOB)
    assert (plan.version, plan.target_rate, plan.lineage.trigger) == (2, 2 * SMALL["rate"], "replan")


def test_every_service_is_healthy_by_its_own_check(arrangement: Arrangement) -> None:
    checked = [name for name in arrangement.services if arrangement.is_running(name) and name != "airflow-init"]
    assert len(checked) >= 8
    assert {name: arrangement.check(name) for name in checked} == dict.fromkeys(checked, True)


def test_prometheus_serves_the_alerts(arrangement: Arrangement) -> None:
    if not arrangement.is_running("prometheus"):
        pytest.skip("Prometheus is not installed; apt-get install prometheus")
    url = arrangement.url("prometheus", 9090)
    groups = get(f"{url}/api/v1/rules")["data"]["groups"]
    served = {group["name"]: [rule["name"] for rule in group["rules"]] for group in groups}
    assert set(served) == {"flink", "sluice"}
    assert "FlinkProcessDown" in served["flink"] and "SluiceAutopilotSilent" in served["sluice"]


def test_no_secret_is_in_a_log_an_xcom_a_plan_or_mlflow(arrangement: Arrangement) -> None:
    """All of them are in the environment of the tasks, so whatever printed its environment would show here."""
    texts = {name: arrangement.dump(name).encode() for name in ("airflow", "mlflow")}
    for path in arrangement.folder.rglob("*"):
        if path.is_file() and path.name != ".env" and os.access(path, os.R_OK):
            texts[str(path.relative_to(arrangement.folder))] = path.read_bytes()
    assert any(name.startswith("volumes/airflow/logs") for name in texts)
    assert any(name.startswith("volumes/workspace/plans") for name in texts)
    shown = {
        (secret, where)
        for secret, value in arrangement.secrets.items()
        for where, text in texts.items()
        if value.encode() in text
    }
    assert shown == set()


def test_all_of_it_stops(arrangement: Arrangement) -> None:
    arrangement.stop()
    assert arrangement.left() == []
    assert subprocess.run(["pgrep", "-f", str(arrangement.folder)], capture_output=True, text=True).stdout == ""
