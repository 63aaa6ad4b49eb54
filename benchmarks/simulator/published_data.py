"""StreamBed's published sizes as one list: search rows, grid, verification, production, and what its tables state.

The files are those of tests/data/streambed; a folder with the same files of other queries is read in the same way.
"""

import csv
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final, Literal

QUERIES: Final = ("q1", "q2", "q5", "q8", "q11")
SUSTAINED: Final = 0.99
"""Share of the injected rate from which StreamBed calls it sustained (section 4)."""
SOURCE_TASKS: Final = {"q1": 64, "q2": 64, "q5": 32, "q8": 32, "q11": 32}
"""On the test cluster (scenarios of the artifact); the rows of a search and of production state their own."""
MOST_PER_SOURCE_TASK: Final = {"q2": 267e3, "q8": 140e3, "q11": 140e3}
"""Records/s: in production there is a source task for so many of 1.1 times the rate (scenarios of the artifact)."""
VERIFICATION_SOURCE_TASKS: Final = {"q8": 64}
VERIFIED_S: Final = 600.0
PRODUCTION_S: Final = {"q1": 1800.0, "q2": 1800.0, "q11": 1800.0, "q5": 5400.0, "q8": 7200.0}
"""Observed after five minutes of ramp-up (section 8.2)."""
Kind = Literal["mst", "replay", "bracket"]


@dataclass(frozen=True)
class Size:
    """One published size, with all runs of it."""

    source: str
    """search, grid, verification, production or paper."""
    query: str
    kind: Kind
    """An MST; the rate that was achieved when `injected` was asked; or two rates between which the MST lies."""
    memory_mb: float
    """Of a TaskManager of 16 slots, MiB."""
    slots: int
    tasks: tuple[int, ...] | None
    """Of each operator but the source; None where only the number of slots is published."""
    source_tasks: int
    published: tuple[float, ...]
    """Records/s, one a run; of a bracket the lowest and, unless it is open, the highest MST."""
    injected: float = 0.0
    seconds: float = 0.0
    """Replays and brackets: how long a rate was observed."""

    @property
    def median(self) -> float:
        return statistics.median(self.published)

    def error(self, simulated: float) -> float:
        """Relative to what was published; 0 within a bracket, else the distance from its nearer end."""
        if self.kind != "bracket":
            return simulated / self.median - 1
        low, high = self.published[0], (*self.published, float("inf"))[1]
        return simulated / min(max(simulated, low), high) - 1


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(file))


def _tasks(row: dict[str, str]) -> tuple[int, ...]:
    return tuple(int(n) for n in row["parallelism_per_operator"].split("|"))


def read_sizes(folder: Path) -> list[Size]:
    """All published sizes of which `folder` has the figures, and those that the paper itself prints."""
    found = [*_searches(folder), *_grid(folder), *_verification(folder), *_production(folder)]
    in_production = {size.query for size in found if size.source == "production"}
    stated = [size for size in PAPER if size.kind != "bracket" or size.query not in in_production]
    return sorted([*found, *stated], key=lambda size: QUERIES.index(size.query))


def _merged(sizes: Iterable[Size]) -> list[Size]:
    """Runs of the same size as one."""
    runs: dict[Size, list[float]] = {}
    for size in sizes:
        runs.setdefault(_without_figures(size), []).extend(size.published)
    return [_with_figures(size, tuple(published)) for size, published in runs.items()]


def _without_figures(size: Size) -> Size:
    return _with_figures(size, ())


def _with_figures(size: Size, published: tuple[float, ...]) -> Size:
    return Size(**{**vars(size), "published": published})


def _searches(folder: Path) -> list[Size]:
    sizes = []
    for path in sorted(folder.glob("search_q*.csv")):
        for row in _rows(path):
            rate, sources = float(row["mst_events_per_s"]), int(row["source_parallelism"])
            sizes.append(_explored("search", path.stem.removeprefix("search_"), row, sources, rate))
    return _merged(sizes)


def _grid(folder: Path) -> list[Size]:
    rows = _rows(folder / "grid_co_ce.csv")
    return _merged(
        _explored("grid", r["query"], r, SOURCE_TASKS[r["query"]], float(r["mst_events_per_s"])) for r in rows
    )


def _explored(source: str, query: str, row: dict[str, str], source_tasks: int, rate: float) -> Size:
    slots, memory_mb = int(row["task_slots"]), float(row["tm_memory_mb"])
    return Size(source, query, "mst", memory_mb, slots, _tasks(row), source_tasks, (rate,))


def _verification(folder: Path) -> list[Size]:
    """The file states no sizes: for each memory they are those of the grid but the smallest, in ascending order."""
    tasks: dict[tuple[str, float], dict[int, tuple[int, ...]]] = {}
    for size in _grid(folder):
        tasks.setdefault((size.query, size.memory_mb), {})[size.slots] = size.tasks or ()
    found = []
    for (query, memory_mb), rows in _by_memory(_rows(folder / "verification_runs.csv")).items():
        vectors = sorted(tasks[query, memory_mb].items())[1:]
        for (slots, vector), pair in zip(vectors, (rows[i : i + 2] for i in range(0, len(rows), 2)), strict=True):
            for row in pair:
                seen, asked = float(row["observed_mean"]), float(row["injected_rate"])
                place = (memory_mb, slots, vector, VERIFICATION_SOURCE_TASKS.get(query, SOURCE_TASKS[query]))
                found.append(Size("verification", query, "replay", *place, (seen,), asked, VERIFIED_S))
    return found


def _by_memory(rows: Sequence[dict[str, str]]) -> dict[tuple[str, float], list[dict[str, str]]]:
    found: dict[tuple[str, float], list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault((row["query"], float(row["tm_memory_mb"])), []).append(row)
    return found


def _production(folder: Path) -> list[Size]:
    """A replay for each rate of which it is known what was achieved, and for each configuration the bracket of its MST."""
    achieved = {_asked(r): float(r["achieved_rate_mean"]) for r in _rows(folder / "production_achieved.csv")}
    found = []
    rows = sorted(_rows(folder / "production_runs.csv"), key=_asked)
    for (query, memory_mb), group in groupby(rows, key=lambda r: _asked(r)[:2]):
        own = [r for r in group if _asked(r) in achieved]
        if not own:
            continue
        place = (memory_mb, int(own[0]["total_task_slots"]), _tasks(own[0]), int(own[0]["sources"]))
        rates = [(_asked(r)[2], achieved[_asked(r)]) for r in own]
        for rate, seen in rates:
            found.append(Size("production", query, "replay", *place, (seen,), rate, PRODUCTION_S[query]))
        refused = min((rate for rate, seen in rates if seen < SUSTAINED * rate), default=float("inf"))
        taken = max((rate for rate, seen in rates if seen >= SUSTAINED * rate and rate < refused), default=0.0)
        ends = (taken,) if refused == float("inf") else (taken, refused)
        found.append(Size("production", query, "bracket", *place, ends, seconds=PRODUCTION_S[query]))
    return found


def _asked(row: dict[str, str]) -> tuple[str, float, float]:
    return row["query"], float(row["tm_memory_mb"]), float(row["injected_rate"])


def _in_production(query: str, memory_mb: float, slots: int, ends: tuple[float, ...]) -> Size:
    sources = math.ceil(1.1 * ends[0] / MOST_PER_SOURCE_TASK[query])
    return Size("paper", query, "bracket", memory_mb, slots, None, sources, ends, seconds=PRODUCTION_S[query])


def _stated() -> list[Size]:
    """What the paper prints of sizes: Table 2, a figure in section 8.2, Table 3 with Figure 8, and Table 4's lines.

    Table 4's lines take the memory of the whole TaskManager: with that of a slot no coefficients that agree with the
    printed digits give the slots of Table 3 for q8 and q11. What is left open by the digits is 3 % at most.
    """
    single = {"q1": (2, 1.6e6), "q2": (2, 3.6e6), "q5": (9, 50e3), "q8": (9, 1.4e6), "q11": (4, 60e3)}
    sizes = [Size("paper", q, "mst", 65536.0, n, (1,) * n, SOURCE_TASKS[q], (rate,)) for q, (n, rate) in single.items()]
    sizes.append(Size("paper", "q8", "mst", 32768.0, 12, None, SOURCE_TASKS["q8"], (1.92e6,)))
    lines = [("q2", 8192, 6, 15.7e6), ("q2", 65536, 6, 16.2e6), ("q8", 32768, 32, 4.98e6), ("q8", 65536, 32, 5.18e6)]
    lines += [("q11", 8192, 48, 1.70e6), ("q11", 65536, 48, 1.94e6)]
    sizes += [Size("Table 4's line", q, "mst", mb, n, None, SOURCE_TASKS[q], (rate,)) for q, mb, n, rate in lines]
    levels = (8192.0, 16384.0, 32768.0, 65536.0)
    production = {"q2": ((69, 69, 69, 69), (190e6, 228e6)), "q11": ((565, 564, 562, 559), (20e6,))}
    for query, (slots, ends) in production.items():
        for mb, n in zip(levels, slots, strict=True):
            sizes.append(_in_production(query, mb, n, ends))
    sizes += [_in_production("q8", mb, n, (15e6, 22.5e6)) for mb, n in ((32768.0, 179), (65536.0, 176))]
    return sizes


PAPER: Final = tuple(_stated())
