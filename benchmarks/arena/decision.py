"""How long a scaling decision takes: every policy, on dataflows of 10, 100 and 1,000 operators.

    python -m benchmarks.arena.decision

The dataflow is a chain, all of whose operators keep state, are overloaded, and miss the cache, so that every policy decides
about each of them. CPU time: of `decide` the shortest of several calls, of `observe` the longest of a minute.
"""

import math
import time
from itertools import pairwise
from typing import Final

from rich.console import Console
from rich.table import Table

from models.scaling.policies import POLICIES, make_policy
from models.scaling.policy import Facts
from models.scaling.rates import OperatorMetrics, Rates, TaskManagerUse

SIZES: Final = (10, 100, 1000)
REPEATS: Final = 15
LIMIT_MS: Final = 5.0
HISTORY_S: Final = 1800.0
"""What `observe` has seen before it is timed: forecasts need a history."""


def overloaded(operators: int) -> Rates:
    """A chain that reads half of what comes in."""
    names = ["source", *(f"o{i}" for i in range(operators - 1))]
    shared = {
        "observed_input_rate": 50.0,
        "observed_output_rate": 50.0,
        "busyness": 0.9,
        "max_busyness": 0.95,
        "backpressure": 0.2,
        "idleness": 0.0,
        "cpu_cores": 2.5,
        "memory_mb": 158.0,
        "true_processing_rate": 100.0,
        "true_output_rate": 100.0,
    }
    source = OperatorMetrics(parallelism=1, lag_records=1e4, lag_change_per_s=50.0, **shared)
    fed = OperatorMetrics(
        parallelism=3, input_queue_share=0.9, cache_hit_rate=0.5, state_latency_s=2e-3, state_mb=500.0, **shared
    )
    rates = Rates(
        edges=tuple(pairwise(names)),
        source_rates={"source": 100.0},
        operators={name: source if name == "source" else fed for name in names},
        task_manager_use=TaskManagerUse(heap_mb=500.0, metaspace_mb=100.0),
    )
    rates.upstream("source")  # What is derived from the edges alone is kept between calls.
    return rates


def milliseconds(name: str, rates: Rates) -> tuple[float, float]:
    """Of `decide`, and of the slowest `observe` of a minute after half an hour under a rate that rises and falls."""
    policy, decide, observe = make_policy(name), [], []
    for _ in range(REPEATS):
        begin = time.process_time()
        policy.decide(rates)
        decide.append(time.process_time() - begin)
    for i in range(round(HISTORY_S / policy.interval_s)):
        arriving = {"source": 100.0 + 20.0 * math.sin(i / 7)}
        now = rates.model_copy(update={"source_rates": arriving})
        begin = time.process_time()
        policy.observe(Facts((i + 1) * policy.interval_s, policy.interval_s, now, None, 100_000))
        observe.append(time.process_time() - begin)
    return 1e3 * min(decide), 1e3 * max(observe[-max(1, round(60.0 / policy.interval_s)) :])


def main() -> None:
    columns = [f"{call}, {size:,}" for size in SIZES for call in ("decide", "observe")]
    table = Table("policy", *columns, title="ms of CPU per decision, by operators")
    for name in POLICIES:
        row = [ms for size in SIZES for ms in milliseconds(name, overloaded(size))]
        table.add_row(name, *(f"[red]{ms:.2f}[/]" if ms > LIMIT_MS else f"{ms:.2f}" for ms in row))
    table.caption = f"at most {LIMIT_MS:g} ms with 1,000 operators"
    Console().print(table)


if __name__ == "__main__":
    main()
