"""`sluice autopilot all` and `sluice autopilot metrics`: the autopilots of all jobs of a workspace."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.cli.options.standard import JsonLinesOption, WorkspaceOption
from pipelines.cli.output import console, print_json_line, progress_console
from pipelines.cli.running_jobs.autopilot import autopilot

if TYPE_CHECKING:
    from pipelines.piloting.events import PilotEvent
    from pipelines.store.workspace import Workspace

LOOK_EVERY_S = 30.0
"""Time between two searches for jobs."""
HostOption = Annotated[
    str, typer.Option(metavar="ADDRESS", help="Address to serve metrics on; loopback only by default.")
]


@autopilot.command("all")
def run_all(
    metrics_port: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            help="Serve metrics of all autopilots on this port; 0: any free one.",
            show_default=False,
        ),
    ] = None,
    host: HostOption = "127.0.0.1",
    workspace: WorkspaceOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Run the autopilots of all jobs whose file has operations.autopilot, without Airflow, until Ctrl-C."""
    from pipelines.store.workspace import Workspace

    place = Workspace(workspace)

    def show(event: "PilotEvent") -> None:
        said = f"{event.at:%F %T} {event.job}: {event.kind}: {event.reason}"
        print_json_line(event) if as_json else console.print(said, markup=False, soft_wrap=True)

    with ExitStack() as stack:
        if metrics_port is not None:
            _say(f"autopilot: metrics on {stack.enter_context(_served(place, metrics_port, host))}")
        _say(f"autopilot: for all jobs of {place.url} whose file has operations.autopilot; Ctrl-C ends it")
        asyncio.run(_follow(place, show))


@autopilot.command()
def metrics(
    port: Annotated[int, typer.Option(metavar="PORT", min=0, help="Port to serve on; 0: any that is free.")] = 9464,
    host: HostOption = "127.0.0.1",
    workspace: WorkspaceOption = None,
) -> None:
    """Serve OpenMetrics of all autopilots, plans and models of the workspace until Ctrl-C."""
    from pipelines.store.workspace import Workspace

    place = Workspace(workspace)
    with _served(place, port, host) as address, _until_stopped() as stop:
        _say(f"autopilot: metrics of {place.url} on {address}; Ctrl-C ends it")
        stop.wait()


def _served(place: "Workspace", port: int, host: str) -> Any:
    from pipelines.monitoring.serving import served_metrics

    return served_metrics(place, port, host)


async def _follow(place: "Workspace", show: Any) -> None:
    """Until Ctrl-C or SIGTERM; the leases are then given back."""
    from pipelines.piloting.following import pilot_events

    async def show_all() -> None:
        async with aclosing(pilot_events(place, LOOK_EVERY_S)) as events:  # type: ignore[type-var]
            async for event in events:
                show(event)

    loop, following = asyncio.get_running_loop(), asyncio.ensure_future(show_all())
    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, following.cancel)
    await asyncio.wait({following})
    if not following.cancelled():
        following.result()


@contextmanager
def _until_stopped() -> Iterator[threading.Event]:
    """An event that Ctrl-C or SIGTERM sets."""
    stop = threading.Event()
    before = {one: signal.signal(one, lambda *_: stop.set()) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _say(what: str) -> None:
    progress_console.print(what, markup=False, soft_wrap=True)
