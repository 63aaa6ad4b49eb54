"""The Airflow of `make airflow`, on free ports."""

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import psutil

from testbeds.local.machine import free_port

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Question:
    """A question of a task to a person."""

    airflow: "RunningAirflow"
    path: str

    @property
    def shown(self) -> dict[str, Any]:
        """Subject, body, and who answered."""
        found: dict[str, Any] = self.airflow.call("GET", self.path)
        return found

    def answer(self, option: str, **form: Any) -> None:
        self.airflow.call("PATCH", self.path, {"chosen_options": [option], "params_input": form})


class RunningAirflow:
    """An Airflow with scheduler, DAG processor, triggerer and API server, on ports of its own on this machine."""

    def __init__(self, home: Path, log: Path, variables: Mapping[str, str] | None = None) -> None:
        """
        Args:
            variables: environment variables beside those of this process.
        """
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.home, self._log = home, log
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(map(str, (_ROOT / "plugins", _ROOT))),
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
            **(variables or {}),
        }
        command = [sys.executable, "-m", "sluice_airflow.standing"]
        with log.open("w") as sink:
            self._process = subprocess.Popen(command, env=environment, stdout=sink, stderr=sink, start_new_session=True)
        self._token = ""

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The JSON answer of the REST API."""
        return json.loads(self.content(method, path, body))

    def content(self, method: str, path: str, body: dict[str, Any] | None = None) -> bytes:
        """An answer: JSON of the REST API, or a page."""
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=30) as answer:
                found: bytes = answer.read()
                return found
        except HTTPError as error:
            error.add_note(error.read().decode())
            error.add_note(self._log.read_text(errors="replace")[-3000:])
            raise

    def unpause(self, *dags: str) -> None:
        """Let these DAGs run, as soon as Airflow knows them."""
        for dag in dags:
            self.wait_for(partial(self.call, "GET", f"/api/v2/dags/{dag}"))
            self.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})

    def pause(self, *dags: str) -> None:
        for dag in dags:
            self.call("PATCH", f"/api/v2/dags/{dag}", {"is_paused": True})

    def unpause_without_its_schedule(self, dag: str) -> None:
        """Let a DAG run on events and requests; the run of its schedule, which begins at once, is given up."""
        self.unpause(dag)

        def scheduled() -> str | None:
            return next((str(r["dag_run_id"]) for r in self.runs(dag) if r["run_type"] == "scheduled"), None)

        self.give_up(dag, str(self.wait_for(scheduled)))

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """Of a DAG."""
        found: list[dict[str, Any]] = self.call("GET", f"/api/v2/dags/{dag}/dagRuns?limit=100")["dag_runs"]
        return found

    def finished(self, dag: str) -> list[dict[str, Any]]:
        """The DAG's runs that have ended."""
        return [run for run in self.runs(dag) if run["state"] in ("success", "failed")]

    def start(self, dag: str, conf: dict[str, Any]) -> str:
        """Ask for a run with these parameters; returns its id."""
        asked = self.call("POST", f"/api/v2/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf})
        return str(asked["dag_run_id"])

    def started_by_event(self, dag: str, asset: str, extra: dict[str, Any]) -> str:
        """Send an event of an asset, and wait for the run that it starts; returns the run's id."""
        known = {run["dag_run_id"] for run in self.runs(dag)}
        (found,) = self.call("GET", f"/api/v2/assets?name_pattern={asset}")["assets"]
        self.call("POST", "/api/v2/assets/events", {"asset_id": found["id"], "extra": extra})

        def look() -> str | None:
            new = [str(run["dag_run_id"]) for run in self.runs(dag) if run["dag_run_id"] not in known]
            # Airflow adds to what an event carries that it came through the API.
            carried = ((run, event) for run in new for event in self.events(dag, run))
            return next((run for run, event in carried if extra.items() <= event.items()), None)

        return str(self.wait_for(look))

    def events(self, dag: str, run: str) -> list[dict[str, Any]]:
        """The content of the asset events that started a run."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/upstreamAssetEvents"
        return [event["extra"] for event in self.call("GET", path)["asset_events"]]

    def give_up(self, dag: str, run: str) -> None:
        """End a run."""
        self.call("PATCH", f"/api/v2/dags/{dag}/dagRuns/{quote(run)}", {"state": "failed"})

    def states(self, dag: str, run: str) -> dict[str, str]:
        """Of a run's tasks."""
        listed = self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances")["task_instances"]
        return {one["task_id"]: one["state"] for one in listed}

    def task_log(self, dag: str, run: str, task: str, index: int = -1) -> str:
        """What the first try of a task has said; `index` is that of a mapped task."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}/logs/1?map_index={index}"
        return "\n".join(str(line.get("event")) for line in self.call("GET", path)["content"])

    def end(self, dag: str, run: str) -> str:
        """Wait for a run's end; returns the state it ended in."""

        def ended() -> str | None:
            return next((str(one["state"]) for one in self.finished(dag) if one["dag_run_id"] == run), None)

        return str(self.wait_for(ended))

    def question(self, dag: str, run: str, task: str, index: int = -1, times: int = 1) -> Question:
        """Wait for a task to ask a person, and for its processes, as many as `times`, to have ended."""
        self.wait_for(lambda: self.states(dag, run).get(task) == "awaiting_input")
        # Airflow 3.3 tries a task again, and asks again, that was answered before its scheduler has seen its process end.
        finished = f"TaskInstance Finished: dag_id={dag}, task_id={task}, run_id={run},"
        self.wait_for(lambda: self._log.read_text(errors="replace").count(finished) >= times)
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}/{index}/hitlDetails"
        return Question(self, path)

    @property
    def passwords(self) -> Path:
        """The file in which Airflow keeps the password that it has generated."""
        return self.home / "simple_auth_manager_passwords.json.generated"

    def log_in(self) -> None:
        """Wait until it answers; on a busy machine it takes minutes to start."""
        self.wait_for(self.passwords.exists, seconds=600.0)
        credentials = {"username": "admin", "password": json.loads(self.passwords.read_text())["admin"]}
        answer = self.wait_for(lambda: self.call("POST", "/auth/token", credentials), seconds=600.0)
        self._token = answer["access_token"]

    def processes(self) -> list[psutil.Process]:
        """All of them."""
        found: list[psutil.Process] = psutil.Process(self._process.pid).children(recursive=True)
        return found

    def component(self, name: str) -> int:
        """Process id of a component: of the process that the supervisor has started last."""
        found = re.findall(
            rf"^{name} +\| started as process (\d+)$", self._log.read_text(errors="replace"), re.MULTILINE
        )
        return int(found[-1])

    def restarts(self) -> list[str]:
        """The supervisor's messages about processes that ended."""
        return [line for line in self._log.read_text(errors="replace").splitlines() if "ended with exit code" in line]

    def wait_for(self, look: Callable[[], Any], seconds: float = 300.0) -> Any:
        """The result of `look`, once it is true; refused connections and HTTP errors count as false."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self._process.poll() is None, f"Airflow ended: {self._log.read_text()[-3000:]}"
            with contextlib.suppress(OSError):
                if found := look():
                    return found
            time.sleep(0.2)
        raise AssertionError(f"nothing came within {seconds:g} s: {self._log.read_text()[-3000:]}")

    def stop(self) -> None:
        """End all of its processes."""
        below = self.processes()
        self._process.terminate()
        try:
            self._process.wait(150)
        finally:
            for process in below:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            self._process.kill()
            self._process.wait()
