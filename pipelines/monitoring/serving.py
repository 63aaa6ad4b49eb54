"""Serves the metrics over HTTP: OpenMetrics, or Prometheus's text format for those that ask for it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import start_http_server

from models.errors import InvalidInput
from pipelines.monitoring.exporter import HOST, autopilot_registry
from pipelines.monitoring.plans import PlanCollector
from pipelines.store.workspace import Workspace

_MOST_PORT: Final = 65_535


@contextmanager
def served_metrics(workspace: Workspace, port: int, host: str = HOST) -> Iterator[str]:
    """Serve the metrics of a workspace's autopilots, plans and models while the block runs; yields their address.

    Args:
        port: 0: any that is free.

    Raises:
        InvalidInput: the port is taken, or is none.
    """
    if not 0 <= port <= _MOST_PORT:
        raise InvalidInput(f"a port must be between 0 and {_MOST_PORT}, but got {port}")
    registry = autopilot_registry(workspace)
    registry.register(PlanCollector(workspace))
    try:
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise InvalidInput(f"metrics cannot be served on {host}:{port}: {error}; give another port") from None
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        _end(server, thread)


def _end(server: object, thread: threading.Thread) -> None:
    server.shutdown()  # type: ignore[attr-defined]
    server.server_close()  # type: ignore[attr-defined]
    thread.join()
