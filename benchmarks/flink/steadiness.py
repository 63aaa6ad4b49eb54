"""How steady a job on a real Flink is: the rate it sustains under overload, window by window, from the first one on.

    python -m benchmarks.flink.steadiness [nexmark-q1] [--windows 20] [--deployments 2]

One task of each operator, on TaskManagers limited to 0.15 cores. Beside each rate stand the share of CPU time that the
hypervisor stole, and the CPU time of one step of a random walk through 256 KiB, which grows when other machines use the
same core and its caches; no counter shows that. Windows are not repeated here, however much was stolen.
"""

import argparse
import os
import time
from statistics import correlation, mean
from threading import Event, Thread
from types import TracebackType
from typing import Final, Self

import numba
import numpy as np
from rich.console import Console
from rich.table import Table

from models.capacity.mst import VERY_HIGH_RATE
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.inputs.programs import job_program
from testbeds.flink.lab.stolen import StolenTime
from testbeds.flink.testbed import FlinkTestbed
from testbeds.protocol import Configuration

MEMORY_MB: Final = 1024.0
WINDOW_S: Final = 5.0
ON_THE_WAY: Final = "ramp"
"""A phase whose windows are measured once."""
PLACES: Final = 2**16
"""Numbers of 4 bytes: too many for the L1 cache of a core, few enough for L2."""
STEPS: Final = 2_000_000


@numba.njit(nogil=True)
def walk(next_place: np.ndarray, steps: int) -> int:
    place = 0
    for _ in range(steps):
        place = next_place[place]
    return place


class Walk:
    """A random walk through memory that no processor can predict, on processors that are otherwise idle."""

    def __init__(self) -> None:
        order = np.random.default_rng(0).permutation(PLACES).astype(np.uint32)
        self._next_place = np.empty_like(order)
        self._next_place[order] = np.roll(order, -1)
        walk(self._next_place, 1)  # compiles it
        self._took_s: dict[float, float] = {}
        self._ended = Event()
        self._thread = Thread(target=self._go_on, daemon=True)

    def step_s(self, since: float) -> float:
        """Mean CPU time of a step since then (`time.monotonic`), seconds."""
        return mean(took_s for begun, took_s in list(self._took_s.items()) if begun >= since) / STEPS

    def _go_on(self) -> None:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        while not self._ended.is_set():
            begun, used_s = time.monotonic(), time.thread_time()
            walk(self._next_place, STEPS)
            self._took_s[begun] = time.thread_time() - used_s

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="?", default="nexmark-q1", help="a job of the catalogue that is SQL")
    parser.add_argument("--windows", type=int, default=20, help="of 5 s each")
    parser.add_argument("--deployments", type=int, default=2, help="one after the other on the same JVMs")
    asked = parser.parse_args()
    job, found = load_job(asked.job), job_program(asked.job)
    if found is None:
        parser.error(f"{asked.job} is no SQL")
    headings = ("deployment", "window", "records/s", "stolen", "a step, ns")
    table = Table(*headings, title=f"What {asked.job} takes in windows of 5 s")
    rates: list[float] = []
    speeds: list[float] = []
    cluster = load_cluster("flink-local")
    with FlinkTestbed(cluster, [MEMORY_MB], program=found.program) as testbed, Walk() as beside:
        for deployment in range(asked.deployments):
            configuration = Configuration(dict.fromkeys(job.order, 1), MEMORY_MB)
            with testbed.deploy(job, configuration, run="steadiness", seed=deployment) as run:
                for window in range(asked.windows):
                    stolen, begin = StolenTime(), time.monotonic()
                    rates.append(run.inject(VERY_HIGH_RATE, WINDOW_S, ON_THE_WAY).achieved_rate)
                    step_s = beside.step_s(begin)
                    speeds.append(1 / step_s)
                    measured = (f"{rates[-1]:,.0f}", f"{stolen.share():.0%}", f"{1e9 * step_s:.2f}")
                    table.add_row(f"{deployment + 1}", f"{window + 1}", *measured)
    Console().print(table)
    print(f"Correlation of records/s with steps/s: {correlation(rates, speeds):.2f}")


if __name__ == "__main__":
    main()
