"""The lower bound of the arena, and how loose it is: Nexmark q1, q2, q3, q5 and q11 under the five workloads.

    python -m benchmarks.arena.bound [--seed 4711] [--jobs q1,q5] [--mode in-place]

For 99 % of the records within 10 s (savepoint: 60 s), with a burn-in of 30 minutes:

- *bound*: `pipelines.arena.bound`; no policy takes fewer task-hours;
- *clairvoyant*: the cheapest replay found of a policy that knows all rates. It rescales as soon as it may, to the fewest
  tasks that take `factor` times the highest or the mean rate of the time until it may rescale again, each operator as the
  bound's capacities say. The factor is found by bisection. This is a schedule that can be run, so the optimum lies
  between it and the bound;
- *static*: the cheapest fixed deployment (`pipelines.arena.replays.fewest`).

The ratio of clairvoyant and bound says how much of a policy's gap may come from relaxing.
"""

import argparse
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Final, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from models.job import records_in_per_source_record
from models.scaling.limits import most_tasks
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import Rates
from pipelines.arena.bound.lower import lower_bound
from pipelines.arena.evaluation import cells
from pipelines.arena.replays.cell import Cell, ReplayOutcome
from pipelines.arena.replays.compute import capacity, start, testbed, with_key_groups
from pipelines.arena.replays.fewest import fewest_tasks
from pipelines.arena.replays.metrics import FlinkMetrics
from pipelines.arena.replays.outcome import outcome
from pipelines.arena.replays.replay import replay
from pipelines.arena.replays.workloads import Pattern
from pipelines.arena.request import EvaluationRequest, RescaleMode

JOBS: Final = ("q1", "q2", "q3", "q5", "q11")
ATTAINMENT: Final = 0.99
LIMIT_S: Final[dict[RescaleMode, Literal[10, 60]]] = {"in-place": 10, "savepoint": 60, "redeploy": 60}
TICK_S: Final = 5.0
FACTORS: Final = tuple(float(f) for f in np.round(np.geomspace(0.8, 2.5, 24), 3))
CONSOLE: Final = Console(width=140)


class Clairvoyant:
    """A policy that knows the workload."""

    name = "clairvoyant"

    def __init__(self, cell: Cell, work_s: Mapping[str, float], factor: float, highest: bool) -> None:
        self._cell, self._work_s, self._factor, self._highest = cell, work_s, factor, highest
        self._rates = np.repeat(np.array(cell.workload.rates), round(cell.workload.step_s / TICK_S))
        self._most = most_tasks(cell.job)

    @property
    def interval_s(self) -> float:
        return TICK_S

    def decide(self, rates: Rates) -> Decision:
        raise AssertionError("a replay asks a policy to observe")

    def observe(self, facts: Facts) -> Recommendation:
        if facts.last_rescale and facts.time_s < facts.last_rescale.ended_s + self._cell.least_between_s:
            return Recommendation(None, "It may not rescale.")
        first = round(facts.time_s / TICK_S)
        coming = self._rates[first : first + round((self._cell.least_between_s + TICK_S) / TICK_S)]
        if len(coming) == 0:
            return Recommendation(None, "The end.")
        rate = self._factor * float(np.max(coming) if self._highest else np.mean(coming))
        wanted = {
            name: min(max(1, math.ceil(rate * work_s * (1 - 1e-9))), self._most.get(name, 10_000))
            for name, work_s in self._work_s.items()
        }
        if wanted == {name: rates.parallelism for name, rates in facts.rates.operators.items()}:
            return Recommendation(None, "It runs already.")
        return Recommendation(Decision(parallelism=wanted, exact={}, memory_mb={}, reasons={}), f"{rate:g} records/s.")


@dataclass(frozen=True)
class Compared:
    """A cell."""

    job: str
    workload: str
    bound: float | None
    clairvoyant: ReplayOutcome | None
    static: ReplayOutcome | None
    seconds: float
    """CPU time of the bound."""


def compare(cell: Cell) -> Compared:
    limit_s = LIMIT_S[cell.rescale_mode]
    begin = time.process_time()
    bound = lower_bound(cell, limit_s, ATTAINMENT)
    seconds = time.process_time() - begin
    fixed = fewest_tasks(cell, limit_s, ATTAINMENT)
    return Compared(
        cell.job.name.removeprefix("nexmark-"),
        cell.workload.name,
        None if bound is None else bound.task_hours,
        clairvoyant(cell, limit_s),
        None if fixed is None else fixed.outcome,
        seconds,
    )


def clairvoyant(cell: Cell, limit_s: Literal[10, 60]) -> ReplayOutcome | None:
    """The cheapest replay that holds the objective; more tasks hold what fewer do, nearly."""
    ratio, measured = records_in_per_source_record(cell.job), capacity(cell.job, cell.cluster)
    found = []
    # Costs as measured under load, with skew; and nominal ones.
    nominal = {o.name: ratio[o.name] * o.cost.cpu_s for o in cell.job.operators}
    loaded = {name: ratio[name] * cost for name, cost in measured.cost_s.items()}
    for work_s in (nominal, loaded):
        for highest in (True, False):
            low, high = 0, len(FACTORS)
            while low < high:
                middle = (low + high) // 2
                done = _replayed(cell, Clairvoyant(cell, work_s, FACTORS[middle], highest))
                if (getattr(done, f"within_{limit_s}_s") or 0.0) >= ATTAINMENT:
                    found.append(done)
                    high = middle
                else:
                    low = middle + 1
    return min(found, key=lambda o: o.task_hours, default=None)


def _replayed(cell: Cell, policy: Clairvoyant) -> ReplayOutcome:
    begin = start(cell)
    job = with_key_groups(cell.job, begin.parallelism)
    metrics = FlinkMetrics(cell.seed)
    trace = replay(
        testbed(cell), job, cell.workload, policy, begin, least_between_s=cell.least_between_s, metrics=metrics
    )
    return outcome(trace, cell.workload, cell.burn_in_s)


def table(found: list[Compared], mode: RescaleMode) -> Table:
    made = Table(title=f"task-hours, {mode}, {ATTAINMENT:.0%} within {LIMIT_S[mode]} s")
    for name in (
        "job",
        "workload",
        "bound",
        "clairvoyant",
        "/ bound",
        "rescales",
        "static",
        "/ bound",
        "CPU of the bound, s",
    ):
        made.add_column(name, justify="left" if name in ("job", "workload") else "right")
    for c in found:
        made.add_row(
            c.job,
            c.workload,
            _hours(c.bound),
            _hours(None if c.clairvoyant is None else c.clairvoyant.task_hours),
            _ratio(c.clairvoyant, c.bound),
            "-" if c.clairvoyant is None else str(c.clairvoyant.rescales),
            _hours(None if c.static is None else c.static.task_hours),
            _ratio(c.static, c.bound),
            f"{c.seconds:.1f}",
        )
    return made


def _hours(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"


def _ratio(done: ReplayOutcome | None, bound: float | None) -> str:
    return "-" if done is None or bound is None else f"{done.task_hours / bound:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="The lower bound, and how loose it is.")
    parser.add_argument("--seed", type=int, default=4711)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--mode", choices=sorted(LIMIT_S), default="in-place")
    given = parser.parse_args()
    request = EvaluationRequest(
        jobs=tuple(f"nexmark-{job}" for job in given.jobs.split(",")),
        workloads=tuple(Pattern),
        policies=("static",),
        seed=given.seed,
        rescale_modes=(given.mode,),
    )
    found = []
    for cell in cells(request):
        found.append(compare(cell))
        CONSOLE.print(table(found[-1:], given.mode))
    CONSOLE.print(table(found, given.mode))
    ratios = [c.clairvoyant.task_hours / c.bound for c in found if c.clairvoyant and c.bound]
    CONSOLE.print(f"clairvoyant / bound: mean {fmean(ratios):.3f}, highest {max(ratios):.3f}, of {len(ratios)} cells")


if __name__ == "__main__":
    main()
