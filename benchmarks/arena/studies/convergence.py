"""How policies converge at a constant rate: DS2 beside Dhalion on word count, and DS2 on Nexmark (DS2 Figure 6, Table 4).

    python -m benchmarks.arena.studies.convergence

Jobs run on the simulator and read from a durable log, so records unread while a job is too small are read later.
Nexmark costs are the catalogue's, not those of DS2's cluster: rates are chosen so that the main operator needs as many
tasks as the paper found, if it scaled linearly.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from rich.console import Console
from rich.table import Table

from models.job import Job, records_in_per_source_record
from models.resources.memory import managed_memory_per_slot_mb
from models.scaling.policies import make_policy
from pipelines.arena.replays.cell import RescaleRecord
from pipelines.arena.replays.replay import Start, replay
from pipelines.arena.replays.workloads import Workload
from pipelines.inputs.catalogue import load_job
from testbeds.simulator import Simulator, streambed_cluster
from testbeds.simulator.settings import Physics

MEMORY_MB: Final = 65536.0
SLOTS: Final = 16
WORD_COUNT_RATE: Final = 1e6 / 60
EVEN_KEY_GROUPS: Final = 32768
"""Heron hashes words to tasks without key groups; Flink's maximum comes close to that."""
WORD_COUNT: Final[tuple[tuple[str, dict[str, float], str], ...]] = (
    ("ds2", {"policy_interval_s": 60, "warm_up_intervals": 0}, "10 and 20 after 1 step"),
    ("dhalion", {}, "22 and 30 after 6 steps, 2,000 s"),
)
SECTION_5_4: Final = {
    "policy_interval_s": 30,
    "warm_up_intervals": 1,
    "activation_intervals": 5,
    "activation": "median",
    "target_rate_ratio": 1.0,
}
"""The paper does not say how five decisions are combined; here by their median."""
STARTS: Final = (8, 12, 16, 20, 24, 28)
SETTLED_S: Final = 300.0
"""A decision that stands for this long has converged; the paper runs each query for 5 minutes."""
MINUTES: Final = 30
SEED: Final = 1


@dataclass(frozen=True)
class ConvergenceQuery:
    """A row of Table 4 (a column there): the main operator, its tasks in the end, and the paper's steps by start."""

    job: str
    main: str
    tasks: int
    paper: tuple[int, ...]


QUERIES: Final = (
    ConvergenceQuery("nexmark-q1", "calc", 16, (2, 1, 1, 1, 1, 1)),
    ConvergenceQuery("nexmark-q2", "calc", 14, (3, 1, 2, 2, 1, 1)),
    ConvergenceQuery("nexmark-q3", "join", 20, (2, 2, 1, 1, 1, 1)),
    ConvergenceQuery("nexmark-q5", "count-window", 16, (3, 1, 1, 2, 2, 2)),
    ConvergenceQuery("nexmark-q8", "auction-window", 10, (1, 1, 2, 2, 2, 2)),
    ConvergenceQuery("justin-q8", "window-join", 10, (1, 1, 2, 2, 2, 2)),
    ConvergenceQuery("nexmark-q11", "session-window", 28, (3, 2, 2, 1, 1, 1)),
)
"""q8 twice: as StreamBed ran it, two windows and a join one after the other, and as a single join, as DS2 did."""


def start(job: Job, tasks: dict[str, int]) -> Start:
    share = managed_memory_per_slot_mb(MEMORY_MB, SLOTS)
    return Start(tasks, MEMORY_MB, {o.name: share for o in job.operators}, SEED)


def word_count(policy: str, settings: dict[str, float], minutes: int) -> tuple[RescaleRecord, ...]:
    """From one task each; operators are limited in rate, so nothing is random or warms up."""
    job = load_job("wordcount").model_copy(update={"key_groups": EVEN_KEY_GROUPS})
    testbed = Simulator(streambed_cluster(6), physics=Physics().ideal())
    workload = Workload(name="constant", rates=(WORD_COUNT_RATE,) * minutes)
    return replay(
        testbed, job, workload, make_policy(policy, settings), start(job, dict.fromkeys(job.order, 1))
    ).rescales


def word_count_table() -> Table:
    table = Table("policy", "steps", "s", "flatmap", "count", "operators changed", title="Word count (DS2 Figure 6)")
    for policy, settings, paper in WORD_COUNT:
        before = {"flatmap": 1, "count": 1}
        for i, step in enumerate(word_count(policy, settings, minutes=60), 1):
            changed = [name for name in before if step.parallelism[name] != before[name]]
            before = {name: step.parallelism[name] for name in before}
            cells = (f"{i}", f"{step.time_s:,.0f}", *(f"{before[name]}" for name in ("flatmap", "count")))
            table.add_row(policy, *cells, ", ".join(changed))
        table.add_row(policy, "", "paper", "", "", paper, style="dim", end_section=True)
    return table


@dataclass(frozen=True)
class Converged:
    """The result of a query from one start."""

    main: tuple[int, ...]
    """Tasks of the main operator, from the start to where it settled."""
    later: int
    """Rescales after that."""


def converge(query: ConvergenceQuery, tasks: int) -> Converged:
    job = load_job(query.job)
    ratio = records_in_per_source_record(job)
    cost = {o.name: o.cost.cpu_s for o in job.operators}
    rate = (query.tasks - 0.5) / (ratio[query.main] * cost[query.main])
    sources = {o.name: round(1.3 * rate * ratio[o.name] * cost[o.name] + 1) for o in job.sources}
    workload = Workload(name="constant", rates=(rate,) * MINUTES)
    begin = start(job, {**dict.fromkeys(job.order, tasks), **sources})
    steps = replay(Simulator(streambed_cluster(40)), job, workload, make_policy("ds2", SECTION_5_4), begin).rescales
    settled = next((i for i, (a, b) in enumerate(pairwise(steps), 1) if _runs(a, b) >= SETTLED_S), len(steps))
    return Converged((tasks, *(s.parallelism[query.main] for s in steps[:settled])), len(steps) - settled)


def _runs(step: RescaleRecord, following: RescaleRecord) -> float:
    return following.time_s - step.time_s - step.downtime_s


def nexmark_table() -> Table:
    table = Table("query", "paper's tasks", *(f"from {s}" for s in STARTS), title="DS2's steps on Nexmark (Table 4)")
    for query in QUERIES:
        cells = []
        for tasks, paper in zip(STARTS, query.paper, strict=True):
            found = converge(query, tasks)
            later = f", {found.later} later" if found.later else ""
            cells.append(" > ".join(map(str, found.main)) + f"\n{len(found.main) - 1} ({paper}){later}")
        table.add_row(query.job, f"{query.tasks}", *cells, end_section=True)
    table.caption = (
        f"tasks of the main operator; steps until a decision stood for {SETTLED_S:.0f} s (the paper's); later: "
    )
    table.caption += f"rescales after that, within {MINUTES} min"
    return table


def main() -> None:
    console = Console(width=160)
    console.print(word_count_table())
    console.print(nexmark_table())


if __name__ == "__main__":
    main()
