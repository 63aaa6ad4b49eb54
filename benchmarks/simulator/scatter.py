"""Why published MSTs of small sizes of q8 differ by a factor of two: the same sizes, searched in four ways.

    python -m benchmarks.simulator.scatter [--query q8] [--slots 9,12,16,32] [--runs 8] [--processes 2] [--json]

Windows of 10 s fire at all tasks within a second or two, and while they do, the sources wait: the rate has teeth 10 s
apart. StreamBed's artifact samples q8 every 10 s, and a sample is the rate of 5 s; so it sees the same half of each tooth,
and which half depends on the moment at which a target began. Table: lowest, median and highest MST of `--runs`
deployments with BIDS2's tasks and 2 GB a slot, found by the artifact's search with

* samples every 10 s, as for q8, of eight TaskManagers that are scraped at times of their own, or all at once;
* samples every 5 s, as for the other queries, which see everything, likewise.
"""

import argparse
import json
import statistics
import sys
from dataclasses import asdict, dataclass
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.pool import Pool
from benchmarks.simulator.published_data import SOURCE_TASKS, Size
from benchmarks.simulator.published_runs import deployment
from benchmarks.simulator.published_search import GRID, ScrapedRun, SearchTimes, mst_of, search_as_published
from testbeds.simulator import Physics

MEMORY_MB: Final = 32768.0
WAYS: Final = ((10.0, True), (10.0, False), (5.0, True), (5.0, False))
"""Seconds between samples, and whether TaskManagers are scraped at times of their own."""


@dataclass(frozen=True)
class Searches:
    """What the searches of one size found in one way, records/s; those that sustained no target are left out."""

    slots: int
    every_s: float
    staggered: bool
    mst: list[float]


def found(query: str, slots: int, every_s: float, staggered: bool, seed: int) -> float | None:
    """The MST of one search, records/s; None where no target was sustained."""
    tasks = SOURCE_TASKS[query]
    times = SearchTimes(GRID[query].warmup_s, GRID[query].limit_s, every_s)
    with deployment(Size("grid", query, "mst", MEMORY_MB, slots, None, tasks, ())).run(tasks, seed) as run:
        return mst_of(search_as_published(ScrapedRun(run, Physics(), seed, staggered), times))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--query", default="q8")
    parser.add_argument("--slots", default="9,12,16,32")
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    cells = [(int(slots), *way) for slots in asked.slots.split(",") for way in WAYS]
    calls = [(asked.query, *cell, seed) for cell in cells for seed in range(asked.runs)]
    with Pool(asked.processes, Console(stderr=True)) as pool:
        values = pool.map(found, calls, "searches")
    rows = []
    for i, (slots, every_s, staggered) in enumerate(cells):
        own = [v for v in values[i * asked.runs : (i + 1) * asked.runs] if v is not None]
        rows.append(Searches(slots, every_s, staggered, own))
    if asked.json:
        print(json.dumps([asdict(row) for row in rows], indent=1))
        return
    table = Table("slots", "samples", "scrapes", "searches that ended", "lowest", "median", "highest", "ratio")
    for row in rows:
        mst = row.mst
        figures = [f"{v / 1e6:.2f}" for v in (min(mst), statistics.median(mst), max(mst))]
        scrapes = "one by one" if row.staggered else "at once"
        size = (f"{row.slots}", f"every {row.every_s:g} s", scrapes, f"{len(mst)} of {asked.runs}")
        table.add_row(*size, *figures, f"{max(mst) / min(mst):.2f}")
    Console(width=None if sys.stdout.isatty() else 120).print(table)


if __name__ == "__main__":
    main()
