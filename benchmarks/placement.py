"""How fast placements are found and thresholds tuned, beside the figures of CAPSys section 6.5.

    python benchmarks/placement.py

The instance is the paper's Q2-join, scaled to the workers and slots. The paper searched with 20 threads of a c220g2
machine until the first plan within its thresholds, "in up to 100 ms" at up to 256 tasks, and tuned with a time-out of
5 s; ours is one thread. First plans are medians of 20 searches for each of the paper's three thresholds; the time shown
is the slowest of the three. Compilation is done before, and stated.
"""

import json
import statistics
import time
from pathlib import Path
from typing import Final

import numpy as np
from rich.console import Console
from rich.table import Table

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.placement import tune
from models.placement.budget import Budget
from models.placement.cost import load_limits
from models.placement.feasible import first_feasible
from models.placement.problem import Problem
from models.placement.search import NO_THRESHOLDS, Verdict, count_within, search_first

INSTANCE = json.loads((Path(__file__).parents[1] / "tests" / "data" / "capsys" / "q2_scaled.json").read_text())
SIZES: Final = ((4, 4, 16), (4, 16, 64), (8, 8, 64), (16, 16, 256), (16, 64, 1024), (70, 16, 1100))
"""Workers, slots of each, tasks."""
PAPER_THRESHOLDS: Final = ((0.08, 0.15, 0.6), (0.15, 0.25, 0.8), (0.25, 0.3, 0.9))
PAPER_FIRST_PLAN: Final = {16: "<= 100 ms", 64: "<= 100 ms", 256: "<= 100 ms"}
PAPER_TUNING: Final = {(4, 16): "1.16 s", (16, 64): "125.08 s"}
RUNS: Final = 20


def q2_scaled(workers: int, slots: int, tasks: int) -> tuple[Dataflow, Cluster]:
    """Q2-join with its parallelism scaled to the tasks, as the data's own note says."""
    operators = [dict(o) for o in INSTANCE["operators"]]
    for o in operators:
        o["parallelism"] = max(1, int(o.pop("base") / 21 * tasks))
    operators[-1]["parallelism"] = tasks - sum(o["parallelism"] for o in operators[:-1])
    dataflow = Dataflow.model_validate({"operators": operators, "edges": INSTANCE["edges"]})
    return dataflow, Cluster.model_validate({"count": workers, "slots": slots})


def first_plan_seconds(problem: Problem) -> tuple[float | None, int]:
    """The slowest of the paper's thresholds that a plan meets, and how many of the three do."""
    seconds = []
    for thresholds in PAPER_THRESHOLDS:
        times = []
        for seed in range(RUNS):
            started = time.perf_counter()
            found = first_feasible(problem, np.array(thresholds), Budget(), seed)
            times.append(time.perf_counter() - started)
        if found.verdict is Verdict.FEASIBLE:
            seconds.append(statistics.median(times))
    return max(seconds, default=None), len(seconds)


def tree_seconds(problem: Problem) -> str:
    """The tree search alone, for the loosest of the paper's thresholds."""
    started = time.perf_counter()
    found = search_first(problem, load_limits(problem, np.array(PAPER_THRESHOLDS[-1])), Budget(time.perf_counter, 10.0))
    return f"{1000 * (time.perf_counter() - started):.2f} ms" if found.counts is not None else "> 10 s"


def counting_speed() -> str:
    """Nodes a second while counting all plans of 64 tasks on 8 workers for five seconds."""
    problem = Problem.of(*q2_scaled(8, 8, 64))
    budget = Budget(time.perf_counter, 5.0)
    plans, _ = count_within(problem, NO_THRESHOLDS, budget)
    seconds = budget.seconds or 5.0
    return f"{budget.nodes / seconds / 1e6:.1f} M nodes/s, {plans / seconds / 1e6:.1f} M plans/s"


def main() -> None:
    console = Console()
    started = time.perf_counter()
    tune(*q2_scaled(4, 4, 16))
    console.print(
        f"first tuning of a process, with loading or compiling the kernels: {time.perf_counter() - started:.2f} s"
    )
    table = Table(title="Q2-join of CAPSys, one thread")
    for column in ("tasks", "workers x slots", "first plan", "thresholds met", "tree alone", "paper: first plan"):
        table.add_column(column, justify="right")
    for column in ("tuning", "proved", "lambda*", "gap", "paper: tuning"):
        table.add_column(column, justify="right")
    for workers, slots, tasks in SIZES:
        dataflow, cluster = q2_scaled(workers, slots, tasks)
        problem = Problem.of(dataflow, cluster)
        first, met = first_plan_seconds(problem)
        tuning = tune(dataflow, cluster, clock=time.perf_counter, time_limit_s=120.0)
        proved = [d for d, yes in tuning.single_proved.items() if yes]
        table.add_row(
            str(tasks),
            f"{workers} x {slots}",
            "none" if first is None else f"{1000 * first:.2f} ms",
            f"{met} of 3",
            tree_seconds(problem),
            PAPER_FIRST_PLAN.get(tasks, ""),
            f"{tuning.seconds:.2f} s",
            "all" if tuning.status == "optimal" else ", ".join(proved) or "nothing",
            f"{tuning.relaxation:.4f}",
            "unknown" if tuning.gap is None else f"{tuning.gap:.1%}",
            PAPER_TUNING.get((workers, slots), ""),
        )
    console.print(table)
    console.print(f"counting: {counting_speed()}")


if __name__ == "__main__":
    main()
