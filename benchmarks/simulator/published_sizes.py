"""All published sizes of StreamBed's five queries beside the simulator, in one table.

    python -m benchmarks.simulator.published_sizes [--queries q1,q5] [--sources grid,...] [--seeds 3] [--processes 2] [--json]
        [--data FOLDER] [--keep FILE]

`published_data.py` reads the sizes. Each is deployed with its published tasks on the simulator as the catalogue has it,
with noise, once a seed; the median counts. Where only the number of slots is published, the tasks are BIDS2's of the
simulated rates: those of a single-task run, or for production those of the largest run on three workers (section 6).

* Search rows, grid and what the paper states of small sizes are MSTs, found by the artifact's search
  (`published_search.py`).
* Verification and production runs are replays: the rate comes into a log, as into the Kafka of the published runs, for
  two or five minutes of ramp-up and then for the published time; what is compared is the rate that was read.
* A production configuration has a row for its MST, too: the published runs bracket it. The simulator's is found by
  bisection with rate-limited sources, as `capacity/extrapolation.py` does it.

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
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.pool import Pool
from benchmarks.simulator.published_data import QUERIES, Size, read_sizes
from benchmarks.simulator.published_runs import ROOT, best_tasks, key_of, seeds_of, simulate
from models.job import Job
from pipelines.inputs.catalogue import load_job

DATA: Final = ROOT / "tests" / "data" / "streambed"


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
