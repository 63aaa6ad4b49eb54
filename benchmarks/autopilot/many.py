"""Many autopilots in one process, as Airflow's triggerer and `sluice autopilot all` run them: how late their rounds begin.

    python -m benchmarks.autopilot.many [--jobs 200] [--seconds 180] [--policy sluice]

A second process answers as Flink does over HTTP: it simulates the jobs, whose rates go up and down, with the adaptive scheduler
and pending records. Each job is a source, a counting vertex and a sink, with its own rate, and has a file that asks for an
autopilot. A round reads the file and the counters, lets the policy decide, rescales where it says so, verifies it, and stores
decisions, leases and states on disk. What began in the first 30 s does not count: code is compiled then.
"""

import argparse
import asyncio
import multiprocessing
import os
import resource
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Final

import yaml

from models.scaling.policies import make_policy
from pipelines.control.autopilot import POLL_S
from pipelines.control.files import AutopilotFiles
from pipelines.following.polling import Following
from pipelines.inputs.catalogue import CATALOGUE_VARIABLE
from pipelines.piloting.events import PilotEvent
from pipelines.piloting.pilot import JobPilot, piloted_jobs
from pipelines.store.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]
WARM_UP_S: Final = 30.0
SLOTS: Final = 32
"""Of each job."""
CHAIN: Final = ("clicks", "count", "out")


def serve(jobs: int, pipe: Connection) -> None:
    """Answer as a Flink with so many jobs until the pipe is closed."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from flink.steered import SteeredFlink, SteeredJob

    def rate(number: int, t: float) -> float:
        return 600.0 + 7 * number if (t + 3 * number) % 120 < 60 else 1500.0 + 7 * number

    made = [SteeredJob(time.monotonic, f"{n:032x}", f"job-{n}", partial(rate, n), slots=SLOTS) for n in range(jobs)]
    with SteeredFlink(*made) as flink:
        pipe.send(flink.url)
        with suppress(EOFError):
            while True:
                pipe.recv()
                pipe.send((len(flink.requests), sum(job.attempt for job in made)))


def write_catalogue(folder: Path, jobs: int, policy: str, url: str) -> None:
    """A file for each job."""
    for kind in ("jobs", "clusters"):
        (folder / kind).mkdir()
    kinds = {CHAIN[0]: {"kind": "source"}, CHAIN[-1]: {"kind": "sink"}}
    asked = {
        "mode": "alone",
        "flink": url,
        "policy": policy,
        "limits": {"settle_s": 2.0, "least_between_s": 20.0, "most_slots": SLOTS},
    }
    for number in range(jobs):
        document = {
            "name": f"job-{number}",
            "description": "Counts clicks.",
            "figures_from": "made up",
            "operators": [
                {"name": name, "cost": {"cpu_s": 1e-4}, "figures_from": "made up", **kinds.get(name, {})}
                for name in CHAIN
            ],
            "edges": [{"from": a, "to": b, "partitioning": "rebalance"} for a, b in pairwise(CHAIN)],
            "operations": {"autopilot": asked},
        }
        (folder / "jobs" / f"job-{number}.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")


class TimedPilot(JobPilot):
    """Notes when its rounds begin, and how long they take."""

    def __init__(self, workspace: Workspace, job: str) -> None:
        super().__init__(workspace, job)
        self.rounds: list[tuple[float, float, bool]] = []
        """Begin, duration, and whether something was reported, such as a rescale."""

    def poll(self) -> PilotEvent | None:
        began_s = time.monotonic()
        event = super().poll()
        self.rounds.append((began_s, time.monotonic() - began_s, event is not None))
        return event


async def run(workspace: Workspace, seconds: float) -> list[TimedPilot]:
    """Pilot all jobs for so long."""
    pilots: list[TimedPilot] = []

    def pilot(job: str) -> TimedPilot:
        pilots.append(TimedPilot(workspace, job))
        return pilots[-1]

    following = Following("the autopilot of", lambda: piloted_jobs(workspace), pilot)
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            async for _ in following.events(600.0):
                pass
    return pilots


def report(pilots: list[TimedPilot], from_s: float, every_s: float) -> None:
    """Print what the rounds took, and how late they began.

    Args:
        every_s: from the begin of a round to that of the next.
    """
    rounds = [one for pilot in pilots for one in pilot.rounds if one[0] >= from_s]
    calm = [took for _, took, reported in rounds if not reported]
    busy = [took for _, took, reported in rounds if reported]
    late = sorted(
        second[0] - max(first[0] + every_s, first[0] + first[1])
        for pilot in pilots
        for first, second in pairwise(pilot.rounds)
        if first[0] >= from_s
    )
    print(f"{len(calm)} rounds without a rescale: {median(calm):.2f} s in the median, {max(calm):.2f} at most")
    if busy:
        print(f"{len(busy)} rounds with one: {median(busy):.2f} s in the median, {max(busy):.2f} at most")
    print(f"rounds begin late by {median(late):.2f} s in the median, {late[int(0.99 * len(late))]:.2f} s at p99")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=180.0)
    parser.add_argument("--policy", default="sluice")
    asked = parser.parse_args()
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    multiprocessing.get_context("spawn").Process(target=serve, args=(asked.jobs, theirs), daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_catalogue(place, asked.jobs, asked.policy, ours.recv())
        os.environ[CATALOGUE_VARIABLE] = folder
        workspace = Workspace(str(place / "workspace"))
        began_s, began_cpu_s = time.monotonic(), time.process_time()
        pilots = asyncio.run(run(workspace, asked.seconds))
        cores = (time.process_time() - began_cpu_s) / (time.monotonic() - began_s)
        ours.send(None)
        requests, rescales = ours.recv()
        decided = sum(len(list(AutopilotFiles(workspace, f"job-{n}").decisions())) for n in range(asked.jobs))
        report(pilots, began_s + WARM_UP_S, min(make_policy(asked.policy, {}).interval_s, POLL_S))
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{asked.jobs} jobs, {asked.policy}: {cores:.2f} cores, {peak_mib:.0f} MiB, {requests / asked.seconds:.0f} requests/s, "
        f"{decided} decisions stored, {rescales} rescales"
    )
    ours.close()


if __name__ == "__main__":
    main()
