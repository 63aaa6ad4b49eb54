"""Justin beside DS2: steps, tasks and memory at a constant rate (Justin section 5, Figure 5).

    python -m benchmarks.arena.studies.justin [--log]

As there: tasks are to be busy half of the time (the published configuration has a utilisation target of 0.5), no operator
gets more than 24, decisions fall every 2 minutes, the first minute after a start is not measured, sources are not counted.
TaskManagers of 2 GB with 4 slots start every task with 158 MB; q5, whose state does not fit such a slot in this catalogue,
has the 16 slots of 64 GB that it was measured with. Rates of q1 to q5 are those at which the paper's tasks of the main
operator would be half busy.
Sources are rate-limited, as there; with `--log` they read from a durable log, and catch up at full speed.
"""

import sys
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.arena.studies.limited_source import LimitedSources
from models.cluster import Cluster
from models.job import Job, records_in_per_source_record
from models.metrics import SAMPLE_INTERVAL_S
from models.resources.memory import MANAGED_MB, deployed_memory_mb, managed_memory_per_slot_mb
from models.scaling.policies import make_policy
from pipelines.arena.replays.replay import Start, Trace, replay
from pipelines.arena.replays.workloads import Workload
from pipelines.inputs.catalogue import load_job
from testbeds.simulator import Simulator, streambed_cluster

MOST_TASKS: Final = 24
LEVELS: Final = 3
"""Of memory, each twice the one before (Justin section 4.2)."""
MINUTES: Final = 40
SOURCES: Final = 15
SEED: Final = 1
HALF_BUSY: Final = {"over_provisioning_factor": 1.0}
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "ds2": {"policy_interval_s": 60, "warm_up_intervals": 1, "activation_intervals": 2, **HALF_BUSY},
    "justin": HALF_BUSY,
    "justin, 2 levels": {"max_level": 2, **HALF_BUSY},
    "sluice": {},
}
"""The paper states three levels, but its runs of q8 and q11 add tasks at the second one: Algorithm 1 with three would take
memory that helped a level further first, so the runs fit `max_level` 2."""
LAST: Final = round(300 / SAMPLE_INTERVAL_S)
"""Reporting intervals at the end in which the job must keep up."""


@dataclass(frozen=True)
class JustinQuery:
    """The paper's results for a query."""

    job: str
    main: str
    tasks: int
    """Of the main operator with DS2, in the end."""
    paper: str
    rate: float | None = None
    """Records/s; None: such that `tasks` are half busy."""
    large_slots: bool = False


QUERIES: Final = (
    JustinQuery("nexmark-q1", "calc", 7, "2 steps each; same tasks; memory -40 %"),
    JustinQuery("nexmark-q2", "calc", 7, "as q1"),
    JustinQuery("nexmark-q3", "join", 12, "same steps, (12; 158) each; memory -10 %"),
    JustinQuery("nexmark-q5", "count-window", 24, "(24; 158) each; no penalty", large_slots=True),
    JustinQuery(
        "justin-q11", "session-window", 12, "same steps; (6; 316) against (12; 158): CPU -48 %, memory -28 %", 115_000.0
    ),
    JustinQuery(
        "justin-q8",
        "window-join",
        24,
        "3 steps against 4; (12; 316) against (24; 158): CPU -48 %, memory -27 %",
        240_000.0,
    ),
)


def limited(job: Job) -> Job:
    """The job with no more than MOST_TASKS tasks of an operator that is no source."""
    sources = {o.name for o in job.sources}
    operators = tuple(
        o if o.name in sources else o.model_copy(update={"max_parallelism": MOST_TASKS}) for o in job.operators
    )
    return Job.model_validate(job.model_copy(update={"operators": operators}).model_dump(by_alias=True))


def rate_of(query: JustinQuery, job: Job) -> float:
    if query.rate is not None:
        return query.rate
    cost = next(o.cost.cpu_s for o in job.operators if o.name == query.main)
    return 0.5 * (query.tasks - 0.5) / (cost * records_in_per_source_record(job)[query.main])


def run(query: JustinQuery, policy: str, log: bool) -> tuple[Job, float, Trace]:
    job = limited(load_job(query.job))
    rate = rate_of(query, job)
    small = Cluster.model_validate({"name": "justin", "count": 80, "slots": 4, "cores": 4, "memory_mb": 2048})
    cluster = streambed_cluster(20) if query.large_slots else small
    memory_mb = cluster.workers[0].memory_mb or 0.0
    level_0 = managed_memory_per_slot_mb(memory_mb, 16) if query.large_slots else MANAGED_MB
    name, settings = policy.split(",")[0], SETTINGS[policy]
    if name == "justin":
        settings = settings | {"managed_memory_mb": level_0}
    if name == "sluice":
        settings = {"memory_levels_mb": [level_0 * 2**i for i in range(LEVELS)]}
    tasks = dict.fromkeys(job.order, 1) | {o.name: SOURCES for o in job.sources}
    begin = Start(tasks, memory_mb, {o.name: level_0 for o in job.operators}, SEED)
    workload = Workload(name="constant", rates=(rate,) * MINUTES)
    testbed = Simulator(cluster) if log else LimitedSources(cluster)
    return job, rate, replay(testbed, job, workload, make_policy(name, settings), begin)


@dataclass(frozen=True)
class Ended:
    """The result of a policy, sources not counted."""

    steps: tuple[tuple[int, float], ...]
    """Tasks and managed memory of a task of the main operator."""
    tasks: int
    memory_mb: float
    keeps_up: bool


def ended(query: JustinQuery, policy: str, log: bool) -> Ended:
    job, rate, trace = run(query, policy, log)
    sources = {o.name for o in job.sources}
    done = [r for r in trace.rescales if not r.refused]
    tasks = {name: count for name, count in done[-1].parallelism.items() if name not in sources}
    read = float(trace.read[-LAST:].sum()) / (LAST * SAMPLE_INTERVAL_S)
    return Ended(
        tuple((r.parallelism[query.main], r.memory_mb[query.main]) for r in done),
        sum(tasks.values()),
        deployed_memory_mb(tasks, done[-1].memory_mb),
        read >= 0.99 * rate,
    )


def main() -> None:
    table = Table("query", "policy", "steps: (tasks; MB) of the main operator", "tasks", "MB", "keeps up")
    for query in QUERIES:
        found = {policy: ended(query, policy, "--log" in sys.argv) for policy in SETTINGS}
        for policy, end in found.items():
            steps = " > ".join(f"({tasks}; {mb:.0f})" for tasks, mb in end.steps)
            table.add_row(
                query.job,
                policy,
                f"{len(end.steps)}: {steps}",
                f"{end.tasks}",
                f"{end.memory_mb:,.0f}",
                "yes" if end.keeps_up else "no",
            )
        for policy in list(SETTINGS)[1:]:
            cpu, memory = (
                found[policy].tasks / found["ds2"].tasks - 1,
                found[policy].memory_mb / found["ds2"].memory_mb - 1,
            )
            table.add_row("", f"{policy} / ds2", "", f"{cpu:+.0%}", f"{memory:+.0%}", "")
        table.add_row("", "paper", query.paper, "", "", "", end_section=True, style="dim")
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
