"""All published sizes of StreamBed's five queries beside the simulator, in one table.

    python benchmarks/published_sizes.py [--queries q1,q5] [--sources grid,...] [--seeds 3] [--processes 2] [--json]
        [--data FOLDER] [--keep FILE]

`published_data.py` reads the sizes. Each is deployed with its published tasks on the simulator as the catalogue has it,
with noise, once a seed; the median counts. Where only the number of slots is published, the tasks are BIDS2's of the
simulated rates: those of a single-task run, or for production those of the largest run on three workers (section 6).

* Search rows, grid and what the paper states of small sizes are MSTs, found by the artifact's search
  (`published_search.py`).
* Verification and production runs are replays: the rate comes into a log, as into the Kafka of the published runs, for
  two or five minutes of ramp-up and then for the published time; what is compared is the rate that was read.
* A production configuration has a row for its MST, too: the published runs bracket it. The simulator's is found by
  bisection with rate-limited sources, as `extrapolation.py` does it.

`calibrated` marks the sizes that costs in jobs/ or constants of the simulator were set with:

| size | set with it |
|---|---|
| one task each, any source | q1 and q2 calc (Table 2), q5 count-window (grid), q8 windows and join, q11 session-window |
| q5, 3-35-1-1-2-1-3-1-1 with 2 or 4 GB a slot | max and join (grid) |
| q1, verification at 150 % | source, `full_load_slowdown` |

All others are predicted, with one reservation: how windows of q5 mix on their way to the join was modelled with the grid
of q5 in view. The noise between deployments has the size of the grid's repetitions; it moves no median.

With `--keep` each simulated value is appended to a file of JSON lines and not simulated again, unless the simulator, the
search or the job's file has changed. `--data` takes a folder with files like those of tests/data/streambed.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import published_search
from placement_pool import Pool
from published_data import QUERIES, SOURCE_TASKS, SUSTAINED, Size, read_sizes
from published_search import EXPLORATION, GRID, ScrapedRun, mst_of, search_as_published
from rich.console import Console
from rich.table import Table

from models.capacity.bids2 import bids2
from models.capacity.observation import OperatorRates
from models.errors import SluiceError
from models.job import Job
from pipelines.inputs.catalogue import load_job
from pipelines.measuring.estimate import mst_settings, operator_rates, search_mst
from testbeds.protocol import Configuration
from testbeds.simulator import Physics, Simulator, streambed_cluster
from testbeds.simulator.run import SimulatedRun

ROOT: Final = Path(__file__).parents[1]
DATA: Final = ROOT / "tests" / "data" / "streambed"
TESTBED_SLOTS: Final = 48
VERIFICATION_RAMP_S, PRODUCTION_RAMP_S = 120.0, 300.0
PRECISION: Final = 0.02
LONGEST_BISECTED_S: Final = 1800.0
HOPELESS: Final = 0.8
"""Share of a rate in the ramp-up below which it is not tried any longer."""
MOST_SEARCHES: Final = 5


def calibrated(size: Size) -> bool:
    """Whether costs or constants were set with this size; see the table above."""
    if size.tasks and set(size.tasks) == {1}:
        return True
    if size.query == "q5" and size.tasks == (3, 35, 1, 1, 2, 1, 3, 1, 1) and size.memory_mb >= 32768:
        return True
    return size.query == "q1" and size.source == "verification" and size.injected > 1.2 * size.median


def out_of_scope(job: Job, size: Size) -> bool:
    """Little memory: levels that the job's file leaves out, since the simulator does not model them."""
    return bool(job.memory_levels_mb) and size.memory_mb not in (job.memory_levels_mb or ())


@dataclass(frozen=True)
class Deployment:
    """A configuration of a job and the testbed for it."""

    job: Job
    testbed: Simulator
    tasks: dict[str, int]
    memory_mb: float

    def run(self, source_tasks: int, seed: int) -> SimulatedRun:
        asked = Configuration({**{s.name: source_tasks for s in self.job.sources}, **self.tasks}, self.memory_mb)
        return self.testbed.deploy(self.job, asked, run="published", seed=seed)


def deployment(size: Size) -> Deployment:
    job = load_job(f"nexmark-{size.query}")
    testbed = Simulator(streambed_cluster(max(3, math.ceil(size.slots / 16))))
    names = [o.name for o in job.scaled_operators]
    vector = size.tasks or best_tasks(job, size)
    return Deployment(job, testbed, dict(zip(names, vector, strict=True)), size.memory_mb)


def best_tasks(job: Job, size: Size) -> tuple[int, ...]:
    """BIDS2's tasks of the rates that the simulator shows."""
    of_run = single_task_rates if size.slots <= TESTBED_SLOTS else largest_run_rates
    rates = of_run(size.query, size.memory_mb)
    found = bids2(rates, size.slots, job.max_parallelism).parallelism
    return tuple(found[o.name] for o in job.scaled_operators)


@cache
def single_task_rates(query: str, memory_mb: float) -> tuple[OperatorRates, ...]:
    """Of each operator, from a search with one task each."""
    job = load_job(f"nexmark-{query}")
    return _searched_rates(job, {o.name: 1 for o in job.scaled_operators}, memory_mb)


@cache
def largest_run_rates(query: str, memory_mb: float) -> tuple[OperatorRates, ...]:
    """Of each operator, from a search with all slots of the test cluster."""
    job = load_job(f"nexmark-{query}")
    best = bids2(single_task_rates(query, memory_mb), TESTBED_SLOTS, job.max_parallelism)
    return _searched_rates(job, best.parallelism, memory_mb)


def _searched_rates(job: Job, tasks: dict[str, int], memory_mb: float) -> tuple[OperatorRates, ...]:
    with Deployment(job, Simulator(), tasks, memory_mb).run(SOURCE_TASKS["q1"], 0) as run:
        _, windows = search_mst(run, mst_settings(job))
    return operator_rates(job, windows[-1].samples)


def simulate(size: Size, seed: int) -> float:
    """What the simulator says of a size, records/s: an MST, or the achieved rate of a replay."""
    deployed = deployment(size)
    if size.kind == "mst":
        return searched(deployed, size, seed)
    if size.kind == "replay":
        ramp_s = VERIFICATION_RAMP_S if size.source == "verification" else PRODUCTION_RAMP_S
        return achieved(deployed, size, size.injected, ramp_s, seed)
    return bisected(deployed, size, seed)


def searched(deployed: Deployment, size: Size, seed: int) -> float:
    """The MST that the artifact's search finds; it starts over where no target was sustained."""
    times = (EXPLORATION if size.source == "search" else GRID)[size.query]
    for again in range(MOST_SEARCHES):
        begun = seed + 1000 * again
        with deployed.run(size.source_tasks, begun) as run:
            found = mst_of(search_as_published(ScrapedRun(run, Physics(), begun), times))
        if found is not None:
            return found
    raise SluiceError(f"{MOST_SEARCHES} searches of {size.query} with {size.slots} slots sustained no target")


def achieved(deployed: Deployment, size: Size, rate: float, ramp_s: float, seed: int) -> float:
    """Mean rate that a fresh deployment reads while `rate` comes into its log."""
    with deployed.run(size.source_tasks, seed) as run:
        run.serve(rate, ramp_s)
        return float(run.serve(rate, size.seconds).read.sum()) / size.seconds


def bisected(deployed: Deployment, size: Size, seed: int) -> float:
    """Highest sustained rate, to PRECISION, by bisection on the logarithm over runs with rate-limited sources."""

    seconds = min(size.seconds, LONGEST_BISECTED_S)

    def sustained(rate: float) -> bool:
        with deployed.run(size.source_tasks, seed) as run:
            if run.inject(rate, PRODUCTION_RAMP_S, "ramp").achieved_rate < HOPELESS * rate:
                return False
            return run.inject(rate, seconds, "observe").achieved_rate >= SUSTAINED * rate

    low = high = size.published[0]
    if sustained(low):
        while sustained(high := high * 1.25):
            low = high
    else:
        while not sustained(low := low / 1.25):
            high = low
    while high / low > 1 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if sustained(middle) else (low, middle)
    return low


@cache
def code_digest(query: str) -> str:
    """Of all that a simulated value depends on, but the size and the seed."""
    files = [*sorted((ROOT / "testbeds").rglob("*.py")), *sorted((ROOT / "models").glob("**/*.py"))]
    files += [
        ROOT / "jobs" / f"nexmark-{query}.yaml",
        ROOT / "pipelines" / "measuring" / "estimate.py",
        Path(__file__),
        Path(published_search.__file__),
    ]
    found = sha256()
    for path in files:
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def same_run(size: Size) -> str:
    """What a simulated value depends on, but for code and seed: sizes of two sources that are the same run share it."""
    times = "exploration" if size.source == "search" else "grid"
    start = size.published[0] if size.kind == "bracket" else 0.0
    asked = (size.kind, times, size.memory_mb, size.slots, size.tasks, size.source_tasks, size.injected, size.seconds)
    return f"{size.query} {asked} {start}"


def seeds_of(size: Size, count: int) -> list[int]:
    """Of each size its own, so that the deviations of runs do not bias all sizes alike."""
    return [int(sha256(f"{same_run(size)} {i}".encode()).hexdigest()[:8], 16) for i in range(count)]


def key_of(size: Size, seed: int) -> str:
    return f"{code_digest(size.query)} {same_run(size)} {seed}"


class Kept:
    """Simulated values by key, in memory and, where there is a file, there."""

    def __init__(self, path: Path | None) -> None:
        self._path, self.values = path, dict[str, float]()
        if path and path.exists():
            for line in path.read_text().splitlines():
                self.values.update(json.loads(line))

    def add(self, key: str, value: float) -> None:
        self.values[key] = value
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps({key: value}) + "\n")


def simulate_all(sizes: Sequence[Size], seeds: int, kept: Kept, processes: int) -> None:
    """Simulate what is not known yet, the longest runs first."""
    missing = {
        key: (s, seed) for s in sizes for seed in seeds_of(s, seeds) if (key := key_of(s, seed)) not in kept.values
    }
    order = sorted(missing.items(), key=lambda item: -item[1][0].slots * (item[1][0].seconds or 900.0))
    with Pool(processes, Console(stderr=True)) as pool:
        for first in range(0, len(order), 8 * processes):
            part = order[first : first + 8 * processes]
            values = pool.map(simulate, [call for _, call in part], f"{first + len(part)} of {len(order)}")
            for (key, _), value in zip(part, values, strict=True):
                kept.add(key, value)


def row_of(size: Size, simulated: Sequence[float]) -> dict[str, Any]:
    """A size as JSON; rates are records/s."""
    job, middle = load_job(f"nexmark-{size.query}"), statistics.median(simulated)
    return {
        "source": size.source,
        "query": size.query,
        "kind": size.kind,
        "memory_mb": size.memory_mb,
        "slots": size.slots,
        "tasks": list(size.tasks or best_tasks(job, size)),
        "tasks_from": "published" if size.tasks else "BIDS2 of simulated rates",
        "injected": size.injected or None,
        "published": list(size.published),
        "simulated": list(simulated),
        "error": size.error(middle),
        "set_with": "calibrated" if calibrated(size) else "predicted",
        "little_memory": out_of_scope(job, size),
    }


def print_sizes(rows: Iterable[dict[str, Any]], console: Console) -> None:
    table = Table("source", "query", "memory", "slots", "tasks", "published", "simulated", "error", "")
    for row in rows:
        table.add_row(
            row["source"],
            row["query"],
            f"{row['memory_mb'] / 1024:g}",
            f"{row['slots']}" + (f" at {rate(row['injected'])}" if row["injected"] else ""),
            "-".join(map(str, row["tasks"])) + ("" if row["tasks_from"] == "published" else " *"),
            published_text(row),
            spread_text(row["simulated"]),
            f"{row['error']:+.0%}",
            row["set_with"] + (", little memory" if row["little_memory"] else ""),
        )
    console.print(table)
    console.print("memory: GiB of a TaskManager with 16 slots; rates: million records/s; *: BIDS2 of simulated rates")


def rate(value: float) -> str:
    return f"{value / 1e6:.3g}"


def published_text(row: dict[str, Any]) -> str:
    if row["kind"] == "bracket":
        return f"{rate(row['published'][0])} to " + (rate(row["published"][1]) if len(row["published"]) > 1 else "...")
    return spread_text(row["published"])


def spread_text(values: Sequence[float]) -> str:
    """Median; of several values, the least and the most."""
    middle = rate(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({rate(min(values))}, {rate(max(values))})"


def summary(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Errors per query, source and kind; sizes with little memory, and those the costs were set with, by themselves."""
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        which = "little memory" if row["little_memory"] else row["set_with"]
        kind = {"mst": "MST", "replay": "replay", "bracket": "MST, bracket"}[row["kind"]]
        groups.setdefault((row["query"], row["source"], kind, which), []).append(row["error"])
    return [
        {
            **dict(zip(("query", "source", "what", "which"), group, strict=True)),
            "sizes": len(errors),
            "within_10": sum(abs(e) <= 0.1 for e in errors),
            "median": statistics.median(errors),
            "lowest": min(errors),
            "highest": max(errors),
        }
        for group, errors in groups.items()
    ]


def print_summary(rows: Sequence[dict[str, Any]], console: Console) -> None:
    table = Table("query", "source", "what", "which", "sizes", "within 10 %", "median error", "from", "to")
    for row in summary(rows):
        errors = (f"{row[name]:+.0%}" for name in ("median", "lowest", "highest"))
        names = (row[name] for name in ("query", "source", "what", "which"))
        table.add_row(*names, f"{row['sizes']}", f"{row['within_10']}", *errors)
    console.print(table)
    predicted = [r["error"] for r in rows if r["set_with"] == "predicted" and not r["little_memory"]]
    within = sum(abs(e) <= 0.1 for e in predicted)
    console.print(f"{within} of {len(predicted)} predicted sizes within 10 %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--sources", help="comma-separated; all by default")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument(
        "--data", type=Path, default=DATA, help="a folder with files like those of tests/data/streambed"
    )
    parser.add_argument("--keep", type=Path, help="a file for simulated values, so that a second call resumes")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    sizes = [s for s in read_sizes(asked.data) if s.query in asked.queries.split(",")]
    if asked.sources:
        sizes = [s for s in sizes if s.source in asked.sources.split(",")]
    kept = Kept(asked.keep)
    simulate_all(sizes, asked.seeds, kept, asked.processes)
    rows = [row_of(size, [kept.values[key_of(size, seed)] for seed in seeds_of(size, asked.seeds)]) for size in sizes]
    if asked.json:
        print(json.dumps({"sizes": rows, "summary": summary(rows)}, indent=1))
        return
    console = Console(width=None if sys.stdout.isatty() else 190)
    print_sizes(rows, console)
    print_summary(rows, console)


if __name__ == "__main__":
    main()
