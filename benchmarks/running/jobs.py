"""What `sluice observe` and `sluice plan --from-running` say of Flink jobs that read Kafka, beside what the jobs then do.

    python -m benchmarks.running.jobs [--flink-version 2.3] [--kinds even,slow-operator,...] [--plan KINDS] [--steps 1234]

Starts a Kafka broker, a feeder for each job, and a Flink of two TaskManagers. The program (`kafka_job/`) knows nothing of
Sluice; its steps wait instead of computing, so that little depends on the speed of the machine, and all jobs run at the
same time. For each of `--kinds`, by `--steps`:

1. The job is fed with 0.6 of what its slow step takes by its own costs, and observed: what would bind it, and its MST
   computed from busyness.
2. It is fed with 1.2 times what it takes, and observed: whether the lag grows, what binds it, and the MST that is seen
   while records wait.
3. It is fed with 0.9 of the MST that was seen: whether the lag stays flat.
4. It is fed with 0.6 of that, and a TaskManager is killed while it is observed: the MST that is seen while
   it catches up. The other TaskManager has slots for all jobs.

For each of `--plan`, another job of the kind is planned from running at 0.6 for twice that rate, the plan is applied, the
rate is doubled, and the lag is watched; then the same with one task less of the tightest vertex, until it grows.
"""

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.running.kafka_job.lab import SETTLE_S, START_S, Fed, Lab, lab, running
from benchmarks.running.kafka_job.program import KINDS, Kind
from models.capacity.observed.record import ObservedCapacity, ObservedJob
from models.plan.content import Plan
from models.plan.parts import Interval
from pipelines.observe.observation import Observed
from pipelines.observe.planning import RunningRequest, plan_running
from pipelines.progress import Quiet
from testbeds.flink.local.distribution import RELEASES

BELOW: Final = 0.6
ABOVE: Final = 1.2
HELD: Final = 0.9
HOLD_S: Final = 300.0
"""How long a lag must stay flat."""
CATCH_UP_S: Final = 150.0
BARRIER_S: Final = 600.0
FLAT: Final = 0.01
"""Share of the rate by which a lag may grow and be flat."""


@dataclass
class Row:
    """What is stated of one job."""

    cells: dict[str, str] = field(default_factory=dict)
    computed: Interval | None = None
    """MST by busyness."""
    mst: float | None = None
    """That was seen."""

    def say(self, name: str, **cells: str) -> None:
        self.cells |= cells
        text = ", ".join(f"{column.replace('_', ' ')}: {cell}" for column, cell in cells.items())
        Console(stderr=True, width=200).print(f"{time.strftime('%H:%M:%S')} {name}: {text}")


def measured(lab: Lab, kind: Kind, seconds: float, steps: str) -> Row:
    """The steps, in the order in which they are named; what waits is read before each."""
    row = Row()
    with running(lab, kind, kind.name) as fed:
        for number, step in enumerate(steps):
            if number > 0:
                fed.drained()
            {"1": _below, "2": _above, "3": _hold, "4": _restart}[step](fed, row, seconds)
        if row.computed is not None and row.mst is not None:
            row.say(kind.name, off=f"{row.computed.value / row.mst - 1:+.0%}")
    return row


def _below(fed: Fed, row: Row, seconds: float) -> None:
    """Step 1."""
    kind, rate = fed.kind, BELOW * fed.kind.takes
    below = fed.seen_at(rate, seconds).job
    row.computed = computed = _computed(below)
    row.say(
        kind.name,
        fed=f"{rate:,.0f}",
        arriving=_off(below.arriving_rate, rate),
        computed=_text(computed),
        would_bind=_named(kind, below),
    )


def _above(fed: Fed, row: Row, seconds: float) -> None:
    """Step 2."""
    kind, computed = fed.kind, row.computed
    over = ABOVE * max(kind.takes, 0.0 if computed is None else computed.value)
    # Buffers hold minutes of what is too much by a fifth.
    fed.offer(2 * over)
    time.sleep(SETTLE_S)
    above = fed.seen_at(over, seconds).job
    row.mst = mst = above.capacity.mst.value if above.capacity is not None and above.capacity.seen else None
    row.say(
        kind.name,
        arriving_above=_off(above.arriving_rate, over),
        at_120=_lag(above, over),
        MST="none seen" if mst is None else f"{mst:,.0f}",
        binds=_named(kind, above),
    )


def _hold(fed: Fed, row: Row, seconds: float) -> None:
    """Step 3."""
    rate = HELD * (row.mst or fed.kind.takes)
    held = fed.seen_at(rate, HOLD_S).job
    row.say(fed.kind.name, at_90=_lag(held, rate), computed_at_90=_text(_computed(held)))


def _restart(fed: Fed, row: Row, seconds: float) -> None:
    """Step 4."""
    mst = row.mst or fed.kind.takes
    fed.offer(BELOW * mst)
    time.sleep(SETTLE_S)
    fed.lab.restarting.wait(BARRIER_S)
    row.say(fed.kind.name, after_restart=_caught_up(fed.observed(CATCH_UP_S).job, mst))


def _text(computed: Interval | None) -> str:
    return "-" if computed is None else f"{computed.value:,.0f} ({computed.low:,.0f} to {computed.high:,.0f})"


def _computed(observed: ObservedJob) -> Interval | None:
    capacity: ObservedCapacity | None = observed.capacity
    return None if capacity is None or capacity.seen else capacity.mst


def _off(value: float | None, truth: float) -> str:
    return "-" if value is None else f"{value / truth - 1:+.1%}"


def _lag(observed: ObservedJob, rate: float) -> str:
    grows = observed.lag_growth or 0.0
    return "flat" if grows < FLAT * rate else f"grows by {grows:,.0f}/s"


def _caught_up(observed: ObservedJob, mst: float) -> str:
    found = observed.capacity
    if found is None or not found.seen:
        return f"none seen ({observed.restarts} restarts)"
    return f"{found.mst.value:,.0f} ({found.mst.value / mst - 1:+.0%}, {observed.restarts} restarts)"


def _named(kind: Kind, observed: ObservedJob) -> str:
    bound = observed.bound_by
    right = bound.cause == kind.cause and kind.vertex in (bound.vertex or "")
    return f"{'right' if right else 'WRONG'}: {bound.vertex}, {bound.cause}"


def planned(lab: Lab, kind: Kind, seconds: float) -> Row:
    """Whether the plan for twice the rate keeps the lag flat, and the fewest tasks of its tightest vertex that do."""
    row, name = Row(), f"{kind.name}-planned"
    with running(lab, kind, name) as fed:
        rate = BELOW * kind.takes
        below = fed.seen_at(rate, seconds)
        plan = plan_running(lab.rest, below, RunningRequest(2 * rate), lab.workspace, Quiet())
        tightest = next(o for o in plan.operators if kind.vertex in o.name)
        row.say(name, fed=f"{rate:,.0f}", planned=", ".join(f"{o.name} {o.parallelism}" for o in plan.operators))
        for tasks in range(tightest.parallelism, 0, -1):
            by_id = _tasks(plan, below, tightest.name, tasks)
            fed.drained()
            lab.rest.require(fed.job, by_id)
            lab.rest.wait_until_running(fed.job, START_S, by_id)
            seen = fed.seen_at(2 * rate, HOLD_S if tasks == tightest.parallelism else seconds).job
            row.say(name, **{f"with_{tasks}": _lag(seen, 2 * rate)})
            if _lag(seen, 2 * rate) != "flat":
                break
    return row


def _tasks(plan: Plan, below: Observed, tightest: str, tasks: int) -> dict[str, int]:
    """Tasks by vertex id."""
    ids = {name: id_ for id_, name in below.operators.items()}
    return {ids[o.name]: tasks if o.name == tightest else o.parallelism for o in plan.operators}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flink-version", choices=tuple(RELEASES), default="1.20")
    parser.add_argument("--kinds", default=",".join(kind.name for kind in KINDS))
    parser.add_argument("--seconds", type=float, default=45.0, help="how long each observation takes")
    parser.add_argument("--plan", default="", help="kinds to plan for twice the rate")
    parser.add_argument("--steps", default="12", help="those of each job, and their order")
    parser.add_argument("--kill", choices=("fullest", "emptiest"), default="fullest", help="TaskManager of step 4")
    options = parser.parse_args(arguments)
    of = {kind.name: kind for kind in KINDS}
    kinds = [of[name] for name in options.kinds.split(",") if name]
    restarting = len(kinds) if "4" in options.steps else 0
    with (
        lab(RELEASES[options.flink_version], restarting, options.kill == "emptiest") as started,
        ThreadPoolExecutor(2 * len(KINDS)) as pool,
    ):
        rows = {kind.name: pool.submit(measured, started, kind, options.seconds, options.steps) for kind in kinds}
        rows |= {
            f"{name}, planned": pool.submit(planned, started, of[name], options.seconds)
            for name in options.plan.split(",")
            if name
        }
        for name, row in rows.items():
            table = Table("", name)
            for column, cell in row.result().cells.items():
                table.add_row(column.replace("_", " "), cell)
            Console(width=160).print(table)


if __name__ == "__main__":
    main()
