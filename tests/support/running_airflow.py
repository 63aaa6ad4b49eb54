"""A whole Airflow of this machine."""

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote


@dataclass(frozen=True)
class Question:
    """What a task asks a person."""

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
        ports = [_free_port() for _ in range(3)]
        self.url = f"http://127.0.0.1:{ports[0]}"
        self._log = log
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",  # `standalone` calls `airflow` by its name
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(ports[0]),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__PARALLELISM": "2",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
            "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports[1]),
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports[2]),
            **(variables or {}),
        }
        command = [sys.executable, "-m", "airflow", "standalone"]
        with log.open("w") as sink:
            # A process that was started in the background ignores SIGINT, and hands that down; Airflow stops by it.
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
                preexec_fn=_heed_interrupts,
            )
        self._token = ""

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The JSON answer of the REST API.

        On SQLite a request is refused with "Database error", and is made once more, where a task starts at the same time:
        Airflow 3.3 writes its audit log first, in the event loop, which the other transaction needs in order to end.
        """
        try:
            return self._answer(method, path, body)
        except HTTPError as error:
            if "Database error" not in error.__notes__[0]:
                raise
        return self._answer(method, path, body)

    def _answer(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("Content-Type", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data, timeout=30) as answer:
                return json.load(answer)
        except HTTPError as error:
            error.add_note(error.read().decode())
            error.add_note(self._log.read_text(errors="replace")[-3000:])
            raise

    def unpause(self, *dags: str) -> None:
        """Let these DAGs run, as soon as Airflow knows them."""
        for dag in dags:
            self.wait_for(lambda dag=dag: self.call("GET", f"/api/v2/dags/{dag}"))
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
        """What the asset events that have started a run carry."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/upstreamAssetEvents"
        return [event["extra"] for event in self.call("GET", path)["asset_events"]]

    def give_up(self, dag: str, run: str) -> None:
        """End a run."""
        self.call("PATCH", f"/api/v2/dags/{dag}/dagRuns/{quote(run)}", {"state": "failed"})

    def states(self, dag: str, run: str) -> dict[str, str]:
        """Of a run's tasks."""
        listed = self.call("GET", f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances")["task_instances"]
        return {one["task_id"]: one["state"] for one in listed}

    def task_log(self, dag: str, run: str, task: str) -> str:
        """What the first try of a task has said."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}/logs/1"
        return "\n".join(str(line.get("event")) for line in self.call("GET", path)["content"])

    def end(self, dag: str, run: str) -> str:
        """Wait for a run's end; returns the state it ended in."""

        def ended() -> str | None:
            return next((str(one["state"]) for one in self.finished(dag) if one["dag_run_id"] == run), None)

        return str(self.wait_for(ended))

    def question(self, dag: str, run: str, task: str, index: int = -1) -> Question:
        """Wait for a task to ask a person."""
        self.wait_for(lambda: self.states(dag, run).get(task) == "awaiting_input")
        # Airflow 3.3 tries a task again, and asks again, that was answered before its scheduler has seen its process end.
        self.wait_for(lambda: self.logged(f"TaskInstance Finished: dag_id={dag}, task_id={task}, run_id={run},"))
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}/{index}/hitlDetails"
        return Question(self, path)

    def logged(self, text: str) -> bool:
        """Whether one of its processes has said this."""
        return text in self._log.read_text(errors="replace")

    def log_in(self) -> None:
        """Wait until it answers; on a busy machine it takes minutes to start."""
        self._token = self.wait_for(lambda: self.call("GET", "/auth/token")["access_token"], seconds=600.0)

    def wait_for(self, look: Callable[[], Any], seconds: float = 300.0) -> Any:
        """What `look` returns, as soon as that is something; refused connections and HTTP errors count as nothing."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            assert self._process.poll() is None, f"Airflow ended: {self._log.read_text()[-3000:]}"
            with contextlib.suppress(OSError):
                if found := look():
                    return found
            time.sleep(0.2)
        raise AssertionError(f"nothing came within {seconds:g} s: {self._log.read_text()[-3000:]}")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def _heed_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
