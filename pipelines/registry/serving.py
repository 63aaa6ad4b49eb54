"""MLflow's pages over the store that Sluice logs to, on loopback; `make mlflow` runs this module."""

import argparse
import os
import socket
import sys
from typing import Final, NoReturn
from urllib.parse import urlsplit

from models.errors import InvalidInput, SluiceError
from pipelines.registry.tracking import Tracking, configure_mlflow, open_tracking, without_password
from pipelines.store.workspace import Workspace

HOST: Final = "127.0.0.1"
PORT: Final = 5000
_MOST_PORT: Final = 65_535


def serve(workspace: Workspace, port: int = PORT) -> NoReturn:
    """Print the address and become MLflow's server, on loopback alone; Ctrl-C stops it.

    Raises:
        InvalidInput: the port is taken, or is none; or MLFLOW_TRACKING_URI names a server, which has its own pages.
    """
    tracking = open_tracking(workspace)
    if urlsplit(tracking.uri).scheme in {"http", "https"}:
        raise InvalidInput(
            f"runs are logged to the MLflow server at {without_password(tracking.uri)}; open its own pages, or unset "
            "MLFLOW_TRACKING_URI to serve the workspace's store"
        )
    _check_free(port)
    configure_mlflow()  # telemetry off, as for the runs
    print(f"MLflow of {workspace.url}: http://{HOST}:{port} (stop: Ctrl-C)", flush=True)
    os.execve(sys.executable, _command(tracking, port), {**os.environ, **_settings(tracking)})  # noqa: S606


def _command(tracking: Tracking, port: int) -> list[str]:
    """One worker, and no proxy for artifacts, which lie in the workspace."""
    root = [] if tracking.artifacts is None else ["--default-artifact-root", tracking.artifacts]
    address = ["--host", HOST, "--port", str(port)]
    return [sys.executable, "-m", "mlflow", "server", *address, "--workers", "1", "--no-serve-artifacts", *root]


def _settings(tracking: Tracking) -> dict[str, str]:
    return {
        "MLFLOW_BACKEND_STORE_URI": tracking.uri,  # not an argument, which other users can read: it may hold a password
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # its processes take a gigabyte, and Sluice has no jobs for them
    }


def _check_free(port: int) -> None:
    if not 0 < port <= _MOST_PORT:
        raise InvalidInput(f"a port must be between 1 and {_MOST_PORT}, but got {port}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            raise InvalidInput(
                f"MLflow cannot be served on {HOST}:{port}: {error.strerror}; give another port: make mlflow PORT=..."
            ) from None


def main() -> None:
    parser = argparse.ArgumentParser(prog="make mlflow", description=__doc__)
    parser.add_argument("--port", type=int, default=PORT)
    arguments = parser.parse_args()
    try:
        serve(Workspace(), arguments.port)
    except SluiceError as error:
        sys.exit(f"make mlflow: {error}")


if __name__ == "__main__":
    main()
