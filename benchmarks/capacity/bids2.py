"""BIDS2 beside the mixed-integer program that StreamBed solves with CBC (section 8: "about 100 ms").

    python -m benchmarks.capacity.bids2

Both solve q5's published instance of the largest run (9 operators), for the 48 slots of the testbed and the 1,079 slots
of Table 3, and must find the same source rate. CBC's time includes building the program with PuLP and running the solver's
process. Times are medians.
"""

import json
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pulp
from rich.console import Console
from rich.table import Table

from models.capacity.bids2 import bids2
from models.capacity.observation import OperatorRates

VECTORS = Path(__file__).parents[2] / "tests" / "data" / "streambed" / "bids2_vectors.json"
TASK_SLOTS = (48, 1079)
RUNS_OF_CBC, RUNS_OF_OURS = 20, 2000


def solve_with_cbc(operators: Sequence[OperatorRates], task_slots: int) -> float:
    """StreamBed Eq. 1-4 as a mixed-integer program; returns the source rate, records/s."""
    problem = pulp.LpProblem("bids2", pulp.LpMaximize)
    source = problem.add_variable("source", lowBound=0)
    tasks = [problem.add_variable(f"tasks{i}", lowBound=1, cat="Integer") for i in range(len(operators))]
    problem += source
    problem += pulp.lpSum(tasks) == task_slots
    for operator, count in zip(operators, tasks, strict=True):
        problem += source * operator.records_in_per_source_record <= count * operator.true_rate_per_task
    problem.solve(pulp.PULP_CBC_CMD(msg=False))
    return float(source.value())


def solve_with_ours(operators: Sequence[OperatorRates], task_slots: int) -> float:
    return bids2(operators, task_slots).source_rate


def median_seconds(solve: Callable[[], float], runs: int) -> float:
    seconds = []
    for _ in range(runs):
        begin = time.perf_counter()
        solve()
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def q5_operators() -> tuple[OperatorRates, ...]:
    """The operators of q5 as measured with 64 GB TaskManagers, from the published instance with 48 slots."""
    vectors = json.loads(VECTORS.read_text())
    vector = next(
        v for v in vectors if (v["query"], v["tm_memory_mb"], v["slots_budget_excl_sources"]) == ("q5", 65536, 48)
    )
    fields = ("name", "true_rate_per_task", "records_in_per_source_record")
    return tuple(OperatorRates(**{field: o[field] for field in fields}) for o in vector["operators"])


def main() -> None:
    warnings.filterwarnings("ignore", message="PULP_CBC_CMD is deprecated")
    operators = q5_operators()
    table = Table(title=f"BIDS2, q5, {len(operators)} operators")
    for heading in ("task slots", "CBC", "ours", "ratio", "source rate, CBC", "source rate, ours"):
        table.add_column(heading, justify="right")
    for slots in TASK_SLOTS:
        theirs = solve_with_cbc(operators, slots)
        ours = solve_with_ours(operators, slots)
        cbc_s = median_seconds(partial(solve_with_cbc, operators, slots), RUNS_OF_CBC)
        ours_s = median_seconds(partial(solve_with_ours, operators, slots), RUNS_OF_OURS)
        row = (f"{slots:,}", f"{cbc_s * 1e3:.1f} ms", f"{ours_s * 1e6:.1f} us", f"{cbc_s / ours_s:,.0f}x")
        table.add_row(*row, f"{theirs:,.1f}", f"{ours:,.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
