"""How fast placements are found and thresholds tuned and proved, beside the figures of CAPSys section 6.5.

    python -m benchmarks.placement.proof          # a minute
    python -m benchmarks.placement.proof --all    # and every second number of workers from 8 to 16, with 4 to 64 slots

The instance is the paper's Q2-join, scaled to the workers and slots. The paper searched with 20 threads of a c220g2
machine until the first plan within its thresholds, "in up to 100 ms" at up to 256 tasks, and tuned with a time-out of
5 s; ours is one thread. First plans are medians of 20 searches for each of the paper's three thresholds; the time shown
is the slowest of the three. Compilation is done before, and stated.

A gap is that of lambda*, 1 - bound / lambda*; "open" shows how far each minimum of phase 1 may lie above its bound.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Sequence
from typing import Final

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.placement.instances import q2_scaled
from models.placement import count_plans, tune
from models.placement.cost import load_limits
from models.placement.feasible import first_feasible
from models.placement.front import pareto_front
from models.placement.problem import DIMENSIONS, Problem
from models.placement.search.tree import Feasibility, search_first
from models.placement.time_limit import TimeLimit

SIZES: Final = ((4, 4, 16), (4, 16, 64), (8, 8, 64), (16, 16, 256), (16, 64, 1024), (70, 16, 1100), (1000, 10, 10_000))
"""Workers, slots of each, tasks."""
MOST_SECONDS: Final = {64: 0.5, 256: 2.0, 1024: 5.0, 1100: None, 10_000: 1.0}
"""Longest acceptable tuning, by number of tasks."""
KNOWN: Final = {(4, 4): (0.09910, 0.2, 0.29431, 1.0476), (8, 8): (0.02903, 0.0, 0.28994, 1.0718)}
"""Workers, slots: the minima of cpu, io and net, and lambda*."""
PAPER_THRESHOLDS: Final = ((0.08, 0.15, 0.6), (0.15, 0.25, 0.8), (0.25, 0.3, 0.9))
PAPER_FIRST_PLAN: Final = {16: "<= 100 ms", 64: "<= 100 ms", 256: "<= 100 ms"}
PAPER_TUNING: Final = {(4, 16): 1.16, (16, 64): 125.08}
RUNS: Final = 20


KNOWN_FRONT: Final = ((0.099102, 0.2, 0.533718), (0.099176, 0.2, 0.308327), (0.298286, 0.2, 0.294306))
"""Of 4 x 4."""


def first_plan_seconds(problem: Problem) -> tuple[float | None, int]:
    """The slowest of the paper's thresholds that a plan meets, and how many of the three do."""
    seconds = []
    for thresholds in PAPER_THRESHOLDS:
        times = []
        for seed in range(RUNS):
            started = time.perf_counter()
            found = first_feasible(problem, np.array(thresholds), TimeLimit(), seed)
            times.append(time.perf_counter() - started)
        if found.verdict is Feasibility.FEASIBLE:
            seconds.append(statistics.median(times))
    return max(seconds, default=None), len(seconds)


def tree_seconds(problem: Problem) -> str:
    """The tree search alone, for the loosest of the paper's thresholds."""
    started = time.perf_counter()
    found = search_first(
        problem, load_limits(problem, np.array(PAPER_THRESHOLDS[-1])), TimeLimit(time.perf_counter, 10.0)
    )
    return f"{1000 * (time.perf_counter() - started):.2f} ms" if found.counts is not None else "> 10 s"


def known_values() -> Table:
    """Minima and lambda* where they are known from all plans."""
    table = Table("workers x slots", "cpu, io, net, lambda*", "known", title="Least thresholds")
    for (workers, slots), known in KNOWN.items():
        tuning = tune(*q2_scaled(workers, slots, workers * slots))
        found = (tuning.single.cpu, tuning.single.io, tuning.single.net, tuning.relaxation)
        table.add_row(f"{workers} x {slots}", ", ".join(f"{v:.5f}" for v in found), ", ".join(map(str, known)))
    return table


def known_front() -> Table:
    """The Pareto front of 4 x 4, where all plans are known, and the times of larger ones."""
    table = Table("workers x slots", "points", "status", "seconds", "cpu, io, net", title="Exact fronts")
    for workers, slots in ((4, 4), (8, 8), (8, 16), (16, 8)):
        front = pareto_front(*q2_scaled(workers, slots, workers * slots), clock=time.perf_counter)
        shown = [f"({p.cost.cpu:.6f}, {p.cost.io:.6f}, {p.cost.net:.6f})" for p in front.points]
        points = "\n".join(shown) if len(shown) <= len(KNOWN_FRONT) else ""
        known = "\nknown: " + "; ".join(map(str, KNOWN_FRONT)) if (workers, slots) == (4, 4) else ""
        table.add_row(f"{workers} x {slots}", str(len(shown)), front.status, f"{front.seconds:.2f}", points + known)
    return table


def first_plans() -> Table:
    """Times to the first plan within the paper's thresholds."""
    table = Table(title="First plan within the thresholds of section 6.5.1")
    for column in ("tasks", "workers x slots", "first plan", "thresholds met", "tree alone", "paper"):
        table.add_column(column, justify="right")
    for workers, slots, tasks in SIZES:
        problem = Problem.of(*q2_scaled(workers, slots, tasks))
        first, met = first_plan_seconds(problem)
        shown = "none" if first is None else f"{1000 * first:.2f} ms"
        paper = PAPER_FIRST_PLAN.get(tasks, "")
        table.add_row(str(tasks), f"{workers} x {slots}", shown, f"{met} of 3", tree_seconds(problem), paper)
    return table


def tunings(sizes: Sequence[tuple[int, int, int]]) -> Table:
    """Times and proofs of tunings."""
    table = Table(title="Tuning with its certificate")
    columns = (
        "tasks",
        "workers x slots",
        "wall",
        "CPU time",
        "should take",
        "lambda*",
        "gap",
        "open: cpu",
        "io",
        "net",
    )
    for column in (*columns, "status", "peak MiB", "paper", "paper / wall"):
        table.add_column(column, justify="right")
    for workers, slots, tasks in sizes:
        dataflow, cluster = q2_scaled(workers, slots, tasks)
        started = time.process_time()
        tuning = tune(dataflow, cluster, clock=time.perf_counter, time_limit_s=120.0)
        cpu_seconds, seconds = time.process_time() - started, tuning.seconds or 0.0
        most = next((s for n, s in MOST_SECONDS.items() if tasks <= n), None)
        paper = PAPER_TUNING.get((workers, slots))
        table.add_row(
            str(tasks),
            f"{workers} x {slots}",
            f"{seconds:.2f} s",
            f"{cpu_seconds:.2f} s",
            "" if most is None else f"{most:g} s",
            f"{tuning.relaxation:.4f}",
            "unknown" if tuning.gap is None else f"{tuning.gap:.3%}",
            *(f"{getattr(tuning.single, d) - getattr(tuning.single_bound, d):.1e}" for d in DIMENSIONS),
            tuning.status,
            str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024),
            "" if paper is None else f"{paper:g} s",
            "" if paper is None else f"{paper / seconds:.0f}",
        )
    return table


def counting() -> Table:
    """Times to count all plans."""
    table = Table(title="Distinct plans")
    for column in ("tasks", "workers x slots", "plans", "CPU time"):
        table.add_column(column, justify="right")
    for workers, slots, tasks in ((4, 4, 16), (7, 6, 42), (16, 4, 64), (8, 8, 64)):
        started = time.process_time()
        plans = count_plans(*q2_scaled(workers, slots, tasks))
        table.add_row(str(tasks), f"{workers} x {slots}", f"{plans:,}", f"{time.process_time() - started:.2f} s")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="8 to 16 workers, with 4 to 64 slots each")
    every = parser.parse_args().all
    console = Console(width=150)
    started = time.perf_counter()
    tune(*q2_scaled(4, 4, 16))
    console.print(
        f"first tuning of a process, with loading or compiling the kernels: {time.perf_counter() - started:.2f} s"
    )
    console.print(known_values())
    console.print(known_front())
    console.print(first_plans())
    console.print(tunings(SIZES))
    if every:
        console.print(tunings([(w, s, w * s) for s in range(4, 65, 12) for w in range(8, 17, 2)]))
    console.print(counting())


if __name__ == "__main__":
    main()
