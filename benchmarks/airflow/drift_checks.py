"""How long checks for drift take: single ones, and batches of 10 and of 25 jobs, each in a process with one Spark session.

    python -m benchmarks.airflow.drift_checks [--singles 3] [--batches 10,25] [--jobs 500] [--workspace FOLDER]

One job is measured and planned on the simulator; the others are copies of it (`copied_jobs`), none of which has drifted. A
process does what the task `watch` of the DAG does. Each job is checked once, since a second check of the same samples computes
nothing.
Printed are seconds by the clock, CPU seconds of the process and of its JVM, and the load of the machine meanwhile.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from benchmarks.airflow.copied_jobs import CopiedJobs  # noqa: E402
from pipelines.drift.reports import latest_drift  # noqa: E402
from pipelines.store.plans import PlanStore  # noqa: E402
from pipelines.store.workspace import Workspace  # noqa: E402

WATCH: Final = """
import sys, psutil
from sluice_airflow.tasks.drift import watch
assert watch(sys.argv[1:], None) == []
own = psutil.Process()
times = [process.cpu_times() for process in (own, *own.children(recursive=True))]
print(sum(one.user + one.system for one in times))
"""
"""The JVM is still there in the end, so its CPU time can be read."""


@dataclass(frozen=True)
class Took:
    """What a process took."""

    jobs: int
    wall_s: float
    cpu_s: float
    load: float
    """Mean of the last minute, at the end."""

    def __str__(self) -> str:
        each = f"{self.wall_s / self.jobs:.1f} s ({self.cpu_s / self.jobs:.1f} CPU) a job"
        return f"{self.jobs:3} jobs  {self.wall_s:6.1f} s ({self.cpu_s:5.1f} CPU)   {each}   load {self.load:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--singles", type=int, default=3, help="jobs to check in a process each")
    parser.add_argument("--batches", default="10,25", help="sizes of the batches")
    parser.add_argument("--jobs", type=int, default=500, help="to extrapolate to, two processes at a time")
    parser.add_argument("--workspace", type=Path, help="workspace to use and keep; default: a temporary one")
    asked = parser.parse_args()
    sizes = [1] * asked.singles + [int(size) for size in asked.batches.split(",")]
    with tempfile.TemporaryDirectory(prefix="sluice-drift-") as temporary:
        folder = asked.workspace or Path(temporary) / "workspace"
        os.environ |= {
            "SLUICE_WORKSPACE": str(folder),
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "plugins")]),
        }
        names = iter(_unchecked(Workspace(folder), folder.parent / "jobs", sum(sizes)))
        took = []
        for size in sizes:
            took.append(_check(list(islice(names, size))))
            print(took[-1], flush=True)
    _print_extrapolated(took, asked.jobs)


def _unchecked(workspace: Workspace, folder: Path, count: int) -> list[str]:
    """Names of planned jobs whose samples have not been compared yet, made if there are too few."""
    jobs, known = CopiedJobs(workspace, folder), set(PlanStore(workspace).jobs())
    names = (f"job-{number:03}" for number in range(10**3))
    unchecked = list(islice((name for name in names if latest_drift(workspace, name) is None), count))
    for name in unchecked:
        if name not in known:
            jobs.add(name, None)
    return unchecked


def _check(jobs: list[str]) -> Took:
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", WATCH, *jobs], cwd=ROOT, check=True, capture_output=True, text=True)
    return Took(len(jobs), time.monotonic() - began, float(done.stdout), os.getloadavg()[0])


def _print_extrapolated(took: list[Took], jobs: int) -> None:
    for size in sorted({one.jobs for one in took}):
        like = [one for one in took if one.jobs == size]
        processes = -(-jobs // size)
        wall_s, cpu_s = (processes * median(getattr(one, name) for one in like) for name in ("wall_s", "cpu_s"))
        print(f"{jobs} jobs, {size:2} in a process, two at a time: {wall_s / 7200:.2f} h, {cpu_s / 3600:.2f} h of CPU")


if __name__ == "__main__":
    main()
