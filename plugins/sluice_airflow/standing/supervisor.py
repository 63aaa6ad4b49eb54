"""Starts the components, keeps them running, and reports their health."""

import os
import signal
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx

from sluice_airflow.standing.component import Component, airflow

# Logs are read from the folder that all components share, so nothing needs to serve them.
COMMANDS: Final = {
    "api-server": airflow("api-server"),
    "scheduler": airflow("scheduler", "--skip-serve-logs"),
    "dag-processor": airflow("dag-processor"),
    "triggerer": airflow("triggerer", "--skip-serve-logs"),
}
_SQLITE: Final = "sluice_airflow.standing.sqlite"
SETTINGS: Final = {
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": f"{_SQLITE}.CONNECT_ARGS",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC": f"{_SQLITE}.CONNECT_ARGS_ASYNC",
    "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FOLDER_PERMISSIONS": "0o700",
    "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FILE_PERMISSIONS": "0o600",
    "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
}
_LOOK_EVERY_S: Final = 1.0
_ASK_EVERY_S: Final = 10.0
_ANSWER_S: Final = 30.0
_lock = threading.Lock()


def run(home: Path, url: str) -> None:
    """Run all components until SIGINT or SIGTERM.

    Args:
        home: AIRFLOW_HOME; its files become readable only by their owner.
        url: of the API server.
    """
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopping.set())
    _make_private(home)
    _prepare_database()
    _make_private(home)
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    components = [Component(name, command, environment, say) for name, command in COMMANDS.items()]
    try:
        threading.Thread(target=_follow_health, args=(components, url, stopping), daemon=True).start()
        while not stopping.wait(_LOOK_EVERY_S):
            for component in components:
                component.supervise(time.monotonic())
    finally:
        say("airflow", "stopping")
        for component in components:
            component.terminate()
        for component in components:
            component.stop()
        say("airflow", "stopped")


def say(name: str, line: str) -> None:
    """Print a line with the name of its component."""
    with _lock:
        print(f"{name:13} | {line}", flush=True)


def healthy_components(answer: Any) -> set[str]:
    """Health of the components by Airflow's `/api/v2/monitor/health`, by the names of COMMANDS; the API server answered."""
    keys = {"scheduler": "scheduler", "dag-processor": "dag_processor", "triggerer": "triggerer"}
    return {"api-server"} | {name for name, key in keys.items() if answer[key]["status"] == "healthy"}


def _follow_health(components: list[Component], url: str, stopping: threading.Event) -> None:
    announced = False
    while not stopping.wait(_ASK_EVERY_S):
        healthy = _ask(url)
        for component in components:
            # While the API server does not answer, the health of the others is unknown.
            known = bool(healthy) or component.name == "api-server"
            component.beat(component.name in healthy if known else None, time.monotonic())
        if not announced and len(healthy) == len(components):
            announced = True
            say("airflow", f"ready on {url}; all components are healthy. Sluice's pages: {url}/sluice/")


def _ask(url: str) -> set[str]:
    with suppress(httpx.HTTPError, ValueError, KeyError):
        return healthy_components(httpx.get(f"{url}/api/v2/monitor/health", timeout=_ANSWER_S).json())
    return set()


def _make_private(home: Path) -> None:
    """A folder of mode 0700, whose files have at most mode 0600; new ones as well, by the umask."""
    os.umask(0o077)
    home.mkdir(parents=True, exist_ok=True)
    for path in _below(home):
        path.chmod(0o700 if path.is_dir() else 0o600)


def _below(home: Path) -> Iterable[Path]:
    return [home, *(path for path in home.rglob("*") if not path.is_symlink())]


def _prepare_database() -> None:
    from airflow.api_fastapi.app import create_auth_manager
    from airflow.utils import db

    say("airflow", "migrating the database to this version")
    db.initdb()
    create_auth_manager().init()  # prints a password that it generates
