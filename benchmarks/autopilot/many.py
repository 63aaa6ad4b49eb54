"""Many autopilots in one process: how long a round of all of them takes, and their memory.

    python -m benchmarks.autopilot.many [--jobs 200] [--rounds 6] [--policy sluice]

A second process answers as Flink does over HTTP: it simulates the jobs, whose rates go up and down, with the adaptive scheduler
and pending records. Each job is a source, a counting vertex and a sink, with its own rate. All jobs are due at the same time in
every round, which is the worst case: otherwise `fly` spreads them over their interval. A round reads the counters, lets the
policy decide, rescales where it says so, verifies it, and stores decisions, leases and states on disk.
"""

import argparse
import multiprocessing
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from flink_client.rest import FlinkRest
from models.scaling.control.limits import ControlLimits
from pipelines.control.autopilot import Autopilot
from pipelines.control.request import AutopilotRequest
from pipelines.control.running import ASKED_S, MOST_AT_A_TIME
from pipelines.store.workspace import Workspace

ROOT = Path(__file__).resolve().parents[2]


def serve(jobs: int, pipe: Connection) -> None:
    """Answer as a Flink with so many jobs until the pipe is closed."""
    sys.path.insert(0, str(ROOT / "tests" / "support"))
    from steered_flink import SteeredFlink, SteeredJob

    def rate(number: int, t: float) -> float:
        return 600.0 + 7 * number if (t + 3 * number) % 120 < 60 else 1500.0 + 7 * number

    made = [SteeredJob(time.monotonic, f"{n:032x}", f"job-{n}", partial(rate, n), slots=32) for n in range(jobs)]
    with SteeredFlink(*made) as flink:
        pipe.send(flink.url)
        try:
            while True:
                pipe.recv()
                pipe.send((len(flink.requests), sum(job.attempt for job in made)))
        except EOFError:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--policy", default="sluice")
    asked = parser.parse_args()
    ours, theirs = multiprocessing.get_context("spawn").Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(asked.jobs, theirs), daemon=True)
    server.start()
    url = ours.recv()
    limits = ControlLimits(settle_s=2.0, least_between_s=20.0)
    with tempfile.TemporaryDirectory() as folder, FlinkRest(url, timeout_s=10.0, patience_s=0.0) as rest:
        workspace = Workspace(folder)
        pilots = [
            Autopilot(workspace, AutopilotRequest(f"job-{n}", url, f"job-{n}", asked.policy, limits=limits), rest)
            for n in range(asked.jobs)
        ]
        took_s, began_s = [], time.process_time()
        with ThreadPoolExecutor(MOST_AT_A_TIME) as pool:
            for _ in range(asked.rounds):
                due_s = time.monotonic() + pilots[0].every_s
                list(pool.map(Autopilot.ask, pilots))
                time.sleep(ASKED_S)
                began = time.monotonic()
                began_cpu_s = time.process_time()
                list(pool.map(Autopilot.round, pilots))
                took_s.append(time.monotonic() - began)
                used_s = time.process_time() - began_cpu_s
                print(f"round of {asked.jobs} jobs: {took_s[-1]:.2f} s, {used_s:.2f} s of CPU", flush=True)
                time.sleep(max(due_s - time.monotonic(), 0.0))
        ours.send(None)
        requests, rescales = ours.recv()
        decided = sum(len(list(pilot.files.decisions())) for pilot in pilots)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    cpu_s = (time.process_time() - began_s) / asked.rounds
    print(
        f"{asked.jobs} jobs, {asked.policy}: a round takes {median(took_s):.2f} s (longest {max(took_s):.2f}), "
        f"{cpu_s:.2f} s of CPU; {peak_mib:.0f} MiB; {requests / asked.rounds / asked.jobs:.1f} requests a job and round, "
        f"{decided} decisions stored, {rescales} rescales"
    )
    ours.close()


if __name__ == "__main__":
    main()
