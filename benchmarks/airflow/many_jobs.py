"""Hundreds of jobs with plans: the jobs page, and the following of their rates, each beside its period.

    python -m benchmarks.airflow.many_jobs [--jobs 500] [--workspace FOLDER]

One job is measured and planned on the simulator; the others are copies of it (`copied_jobs`), with records of operation in the
workspace. The pages are those of a running Airflow (SQLite, 127.0.0.1).

    page     all jobs, a search and a state, as the browser gets them; the first answer also reads every plan
    listing  the search for jobs to follow, every 30 s
    polling  the rates of all jobs, each every 15 s; a process of its own answers as Prometheus

Seconds are by the clock; CPU seconds are those of the process, and say more where others use the machine, too.
"""

import argparse
import asyncio
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from answering.prometheus import PrometheusServer  # noqa: E402
from benchmarks.airflow.copied_jobs import RATE, CopiedJobs, airflow_settings, operate  # noqa: E402
from pipelines.following.polling import Following  # noqa: E402
from pipelines.rates.follow import JobFollower, followed_jobs  # noqa: E402
from pipelines.rates.record import RateChangeEvent  # noqa: E402
from pipelines.rates.status import read_status  # noqa: E402
from pipelines.store.plans import PlanStore  # noqa: E402
from pipelines.store.workspace import Workspace  # noqa: E402
from servers.airflow import RunningAirflow  # noqa: E402

ROUNDS: Final = 3
FOLLOWED_S: Final = 75.0
LISTING_S: Final = 30.0
PAGES: Final = {
    "all jobs": "/sluice/",
    "search": "/sluice/?search=job-04",
    "state": "/sluice/?state=drifted",
    "JSON": "/sluice/jobs.json",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--workspace", type=Path, help="workspace to use and keep; default: a temporary one")
    asked = parser.parse_args()
    names = [f"job-{number:03}" for number in range(asked.jobs)]
    with tempfile.TemporaryDirectory(prefix="sluice-many-") as temporary, _prometheus(names) as url:
        folder = asked.workspace or Path(temporary) / "workspace"
        os.environ |= airflow_settings(folder)
        workspace = Workspace(folder)
        _make(workspace, folder.parent / "jobs", names, url)
        _follow(workspace)
        _show(Path(temporary))


def _serve(names: list[str], pipe: Connection) -> None:
    with PrometheusServer() as prometheus:
        prometheus.rates = dict.fromkeys(names, RATE)
        pipe.send(prometheus.url)
        with suppress(EOFError):
            pipe.recv()


@contextmanager
def _prometheus(names: list[str]) -> Iterator[str]:
    """The address of a server that knows the rates, in a process of its own."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    server = spawn.Process(target=_serve, args=(names, theirs), daemon=True)
    server.start()
    theirs.close()
    yield ours.recv()
    ours.close()
    server.join(10)


def _make(workspace: Workspace, folder: Path, names: list[str], url: str) -> None:
    began, jobs, known = time.monotonic(), CopiedJobs(workspace, folder), set(PlanStore(workspace).jobs())
    for name in names:
        operations = {"replan": {"rates": {"prometheus": {"url": url, "query": name}}}}
        if name in known:
            jobs.write_file(name, operations)
        else:
            jobs.add(name, operations)
            operate(workspace, name, datetime.now(UTC))
    print(f"{len(names)} jobs in {workspace.url}, made in {time.monotonic() - began:.0f} s\n", flush=True)


class TimedFollower(JobFollower):
    """Notes when it polls, and what it could not read."""

    def __init__(self, workspace: Workspace, job: str) -> None:
        super().__init__(workspace, job)
        self.polled_at: list[float] = []

    def poll(self) -> RateChangeEvent | None:
        self.polled_at.append(time.monotonic())
        return super().poll()


def _follow(workspace: Workspace) -> None:
    """Follow all jobs as the triggerer does, for some intervals."""
    listed = [_measured(lambda: followed_jobs(workspace)) for _ in range(ROUNDS)]
    _print("listing", listed, LISTING_S)
    followers: list[TimedFollower] = []

    def follow(job: str) -> TimedFollower:
        followers.append(TimedFollower(workspace, job))
        return followers[-1]

    async def watch() -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(FOLLOWED_S):
                async for event in Following("the rate of", lambda: followed_jobs(workspace), follow).events(LISTING_S):
                    print(f"         the rate of {event.job} has changed")

    wall_s, cpu_s = _measured(lambda: asyncio.run(watch()))
    gaps = [b - a for one in followers for a, b in pairwise(one.polled_at)]
    statuses = [read_status(workspace, name) for name in followed_jobs(workspace)]
    read = sum(status is not None and status.state == "followed" for status in statuses)
    print(
        f"polling  {len(followers)} jobs, {sum(len(one.polled_at) for one in followers)} polls in {wall_s:.0f} s, ",
        end="",
    )
    print(f"{cpu_s / wall_s:.0%} of a core; every {median(gaps):.1f} s (at most {max(gaps):.1f})   ", end="")
    print(f"period {followers[0].interval_s:g} s")
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{read} rates are followed at the end; {peak_mib:.0f} MiB at most\n", flush=True)


def _show(temporary: Path) -> None:
    airflow = RunningAirflow(temporary / "airflow", temporary / "airflow.log")
    try:
        airflow.log_in()
        for name, path in PAGES.items():
            with _cpu_of(airflow.component("api-server")) as cpu:
                took, sizes = [], []
                for _ in range(ROUNDS + 1):
                    began, used = time.monotonic(), cpu()
                    sizes.append(len(airflow.content("GET", path)))
                    took.append((time.monotonic() - began, cpu() - used))
            print(f"{name:9} {sizes[-1] / 1024:7.0f} KiB  first {took[0][0]:6.2f} s", end="")
            print("  then " + "  ".join(f"{wall:.2f} s ({used:.2f} CPU)" for wall, used in took[1:]), flush=True)
        server = psutil.Process(airflow.component("api-server"))
        resident = sum(process.memory_info().rss for process in (server, *server.children(recursive=True)))
        print(f"API server: {resident / 2**20:.0f} MiB")
    finally:
        airflow.stop()


def _measured(call: Callable[[], Any]) -> tuple[float, float]:
    """Seconds by the clock, and of CPU."""
    began, cpu = time.monotonic(), time.process_time()
    call()
    return time.monotonic() - began, time.process_time() - cpu


@contextmanager
def _cpu_of(pid: int) -> Any:
    """A function that returns the CPU seconds of a process and those below it."""
    server = psutil.Process(pid)

    def used() -> float:
        times = [process.cpu_times() for process in (server, *server.children(recursive=True))]
        return float(sum(one.user + one.system for one in times))

    yield used


def _print(name: str, took: list[tuple[float, float]], period_s: float) -> None:
    text = "  ".join(f"{wall:.2f} s ({cpu:.2f} CPU)" for wall, cpu in took)
    print(f"{name:8} {text}   period {period_s:g} s", flush=True)


if __name__ == "__main__":
    main()
