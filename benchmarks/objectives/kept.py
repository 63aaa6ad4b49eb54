"""Whether plans for objectives keep them on a real Flink: lag, recovery from an outage, and price, as promised and as measured.

    python -m benchmarks.objectives.kept --workspace FOLDER [--cases recovery,rate] [--smaller 1] [--json]

The program (`running/kafka_job/`) knows nothing of Sluice, and its steps wait instead of computing. It is measured once, with
few task slots, as `sluice plan --testbed flink --feed kafka` does on a Flink that runs. From these measurements a plan is made
for each of `--cases`, whose objectives are those of `docs/how-to/plan-for-an-objective.md` with outages of seconds instead of
minutes: one that the recovery binds, one that the rate binds, and one that a price keeps to half of the workers that are there.
Then, on a Flink of the TaskManagers that the plan takes, the job runs with the plan's tasks and is fed at the planned rate:

1. It settles until no more than a second's records wait, and what waits in the log is recorded for `--observe` seconds.
2. Where a recovery is asked for, the job is cancelled, and started from its last checkpoint when the outage is over.

The same is done with one task less of the busiest operator, for up to `--smaller` tasks less while the objective that binds is
kept. Series of offsets and checks that have ended are kept in the workspace, and not repeated, nor is what was
measured for the plans once all of it is.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.objectives.checking import Checked, checked
from benchmarks.objectives.planning import FEED, NOTES, Asked, Program
from benchmarks.objectives.verdicts import verdicts
from models.plan.content import Plan
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import RELEASES
from testbeds.kafka.supply import KafkaSupply

CASES: Final = {
    "recovery": Asked(400.0, "lag p99 < 10 s, recover 60 s outage in 80 s, at most 2 $/h"),
    "rate": Asked(400.0, "lag p99 < 10 s, recover 10 s outage in 5 min with 5 s restart, at most 2 $/h", headroom=1.1),
    "price": Asked(400.0, "lag p99 < 10 s, at most 0.75 $/h", cluster="given"),
}


def smaller(plan: Plan, tasks: dict[str, int]) -> dict[str, int] | None:
    """One task less of the operator whose tasks are busiest at the planned rate; None where it has but one."""
    busy = {
        o.name: o.predicted_busyness * o.parallelism / tasks[o.name]
        for o in plan.operators
        if o.name not in plan.source_rates
    }
    tightest = max(busy, key=busy.__getitem__)
    return {**tasks, tightest: tasks[tightest] - 1} if tasks[tightest] > 1 else None


def kept(plan: Plan, made: Checked) -> bool:
    """Whether the objective that binds is."""
    assert plan.objectives is not None
    return next(v.kept for v in verdicts(plan, made) if v.kind == plan.objectives.binding)


def runs_of(program: Program, plan: Plan, supply: KafkaSupply, most_smaller: int, observe_s: float) -> list[Checked]:
    """That with the plan's tasks, and those with fewer."""
    tasks: dict[str, int] | None = dict(plan.parallelism)
    found: list[Checked] = []
    while tasks is not None and len(found) <= most_smaller:
        found.append(checked(program, plan, tasks, supply, observe_s))
        NOTES.print(found[-1], *verdicts(plan, found[-1]), sep="\n")
        tasks = smaller(plan, tasks) if kept(plan, found[-1]) else None
    return found


def _tasks(plan: Plan, made: Checked) -> str:
    fewer = sum(plan.parallelism.values()) - sum(made.tasks.values())
    text = "-".join(str(made.tasks[o.name]) for o in plan.operators)
    return f"{text} (plan)" if not fewer else f"{text} ({fewer} fewer)"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workspace", default=None)
    parser.add_argument("--flink-version", choices=tuple(RELEASES), default="2.3")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--smaller", type=int, default=1, help="most tasks less than planned that are tried")
    parser.add_argument("--observe", type=float, default=120.0, help="seconds for which the lag is recorded")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    options = parser.parse_args(arguments)
    program = Program.of(Workspace(options.workspace), RELEASES[options.flink_version])
    with program.measurable():
        plans = {case: program.planned(CASES[case]) for case in options.cases.split(",")}
    with KafkaSupply(FEED) as supply:
        found = {c: runs_of(program, plan, supply, options.smaller, options.observe) for c, plan in plans.items()}
    if options.json:
        document = {
            case: {
                "objectives": plans[case].model_dump(mode="json")["objectives"],
                "checks": [
                    {**made.model_dump(mode="json"), "verdicts": [v.model_dump() for v in verdicts(plans[case], made)]}
                    for made in checks
                ],
            }
            for case, checks in found.items()
        }
        print(json.dumps(document, indent=1))
        return
    Console(width=180).print(_table(plans, found))


def _waits(made: Checked) -> str:
    """Before the outage and while the job caught up."""
    return "-" if made.recovery is None else ", ".join(f"{1000 * one:.1f}" for one in made.recovery.waits_s) + " ms"


def _table(plans: Mapping[str, Plan], found: Mapping[str, Sequence[Checked]]) -> Table:
    table = Table("case", "tasks", "objective", "promised", "measured", "kept", "p99 before", "8 ms took", "load")
    for case, checks in found.items():
        plan = plans[case]
        assert plan.objectives is not None
        for made in checks:
            for one in verdicts(plan, made):
                binds = " (binds)" if one.kind == plan.objectives.binding else ""
                table.add_row(
                    *(case, _tasks(plan, made), one.stated + binds, one.promised, one.measured),
                    *(
                        "yes" if one.kept else "NO",
                        f"{made.lag.quantile_s:.1f} s",
                        _waits(made),
                        f"{made.load[0]:.0f} to {made.load[1]:.0f}",
                    ),
                )
    return table


if __name__ == "__main__":
    main()
