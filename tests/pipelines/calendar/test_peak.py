"""A peak that is in the calendar: its plan is in force ten minutes ahead, and records stay in time through it.

All parts are real but the clock: the follower of the calendar, the replan with the registered model, and the simulator that
runs the plans.
"""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from models.job import records_in_per_source_record
from models.plan.content import Plan
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import Rates
from pipelines.arena.replays.compute import PHYSICS
from pipelines.arena.replays.outcome import outcome
from pipelines.arena.replays.replay import Start, replay
from pipelines.arena.replays.workloads import Workload
from pipelines.calendar.costs import cost_of
from pipelines.calendar.follow import CalendarFollower
from pipelines.calendar.pricing import sized_rates
from pipelines.calendar.scheduling import calendar_of_plan
from pipelines.calendar.sizes import sizes_apart
from pipelines.inputs.catalogue import load_job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.planning.replan import replan as replan_job
from pipelines.run import PipelineRun
from pipelines.stages import run_all
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from testbeds.simulator import Simulator

JOB, RATE = "nexmark-q1", 1_000_000.0
SUSTAINED: Final = 0.8
"""Of the rate that the CPU time of a record allows: tasks are whole, and their load is uneven."""
PEAK: Final = datetime(2026, 11, 27, 7, tzinfo=UTC)
BEGIN: Final = PEAK - timedelta(minutes=20)
CALENDAR = {
    "time_zone": "Europe/Berlin",
    "base_rate": RATE,
    "rescale_s": 180.0,
    "least_between_s": 1800,
    "events": [{"name": "Black Friday", "start": "2026-11-27T08:00", "duration_s": 1800, "factor": 3}],
}


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory, migrated_database: Path, root: Path) -> Workspace:
    """Plan 1, for the rate before the peak, from the CPU time of a record in the simulator."""
    folder = tmp_path_factory.mktemp("peak")
    document = yaml.safe_load((root / "jobs" / f"{JOB}.yaml").read_text())
    document |= {"sql": None, "operations": {"calendar": CALENDAR}}
    file = folder / f"{JOB}.yaml"
    file.write_text(yaml.safe_dump(document))
    job = load_job(JOB)
    ratio, sources = records_in_per_source_record(job), {o.name for o in job.sources}
    per_slot = SUSTAINED / sum(ratio[o.name] * o.cost.cpu_s for o in job.operators if o.name not in sources)
    rows = [f"{memory},{slots},{per_slot * slots:.0f}" for memory in (8192, 65536) for slots in (2, 4, 8, 12)]
    measured = folder / "measured.csv"
    measured.write_text("\n".join(["memory_mb,task_slots,mst", *rows]) + "\n")
    workspace = Workspace(folder / "workspace")
    asked = PlanRequest(
        job=str(file),
        rate=RATE,
        testbed="recorded",
        measurements=str(measured),
        measurement_rows=5,
    )
    run_all(PipelineRun(asked, workspace))
    return workspace


class Asleep:
    """Leaves the job as it is."""

    name, interval_s = "asleep", 30.0

    def decide(self, rates: Rates) -> Decision:
        return decision({name: metrics.parallelism for name, metrics in rates.operators.items()})

    def observe(self, facts: Facts) -> Recommendation:
        return Recommendation(None, "asleep")


class ByCalendar(Asleep):
    """Makes the plans that the calendar asks for, and has them deployed."""

    name = "calendar"

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, self._now = workspace, BEGIN
        self._follower = CalendarFollower(workspace, JOB, now=lambda: self._now)
        self.plans: list[Plan] = []

    def observe(self, facts: Facts) -> Recommendation:
        self._now = BEGIN + timedelta(seconds=facts.time_s)
        change = self._follower.poll()
        if change is None:
            return Recommendation(None, "nothing is scheduled")
        self.plans.append(replan_job(self._workspace, JOB, change.scheduled.rate, cause=change.cause).plan)
        return Recommendation(decision(tasks_of(self.plans[-1])), change.cause)


def decision(tasks: dict[str, int]) -> Decision:
    return Decision(parallelism=tasks, exact={}, memory_mb={}, reasons={})


def tasks_of(plan: Plan) -> dict[str, int]:
    return {operator.name: operator.parallelism for operator in plan.operators}


@pytest.mark.slow
def test_the_plan_for_a_peak_is_in_force_ten_minutes_before_it_and_records_stay_in_time(planned: Workspace) -> None:
    first = PlanStore(planned).current(JOB)
    run = PipelineRun.of_plan(planned, first)
    # Twenty minutes at 1,000,000 records/s, thirty at three times as many, and ten more.
    workload = Workload(name="Black Friday", rates=(RATE,) * 20 + (3 * RATE,) * 30 + (RATE,) * 10)
    start = Start(
        tasks_of(first),
        run.cluster.workers[0].memory_mb or first.memory_mb,
        {o.name: o.managed_memory_mb for o in first.operators},
        seed=1,
    )

    def replayed(policy: Any, rates: Workload) -> Any:
        trace = replay(Simulator(run.cluster, physics=PHYSICS["in-place"]), run.job, rates, policy, start)
        return trace, outcome(trace, rates)

    calendar = ByCalendar(planned)
    trace, result = replayed(calendar, workload)
    _, without = replayed(Asleep(), workload.first(25))

    up, down = calendar.plans
    assert (up.version, up.target_rate, down.version, down.target_rate) == (2, 3 * RATE, 3, RATE)
    assert up.reasons[0].startswith(
        "calendar: Black Friday from 08:00 on Fri 27 Nov 2026 (Europe/Berlin); triggered by "
    )
    assert tasks_of(down) == tasks_of(first)
    # Due 13 minutes ahead, which is 06:45 on the grid of five minutes.
    rise, fall = trace.rescales
    assert not rise.refused and rise.time_s == 5 * 60
    runs_at = BEGIN + timedelta(seconds=rise.time_s + rise.downtime_s)
    assert PEAK - runs_at >= timedelta(minutes=10)
    assert fall.time_s >= 50 * 60  # once the peak is over

    assert result.within_10_s is not None and without.within_10_s is not None
    assert result.within_10_s >= 0.99  # 1.0, as measured when this was written
    assert without.within_10_s < 0.65  # five minutes of the peak have 3 in 7 of all records
    assert result.last_lag == 0


@pytest.mark.slow
def test_a_schedule_costs_less_than_the_peak_all_day(planned: Workspace) -> None:
    found = calendar_of_plan(planned, PlanStore(planned).current(JOB))
    assert found is not None
    begin = datetime(2026, 11, 26, 23, tzinfo=UTC)
    _, intervals = found[1].ahead(begin, begin + timedelta(days=1))
    sized = sized_rates(planned, JOB, [one.rate for one in intervals])
    cost = cost_of(intervals, sized)
    low, high = sized[RATE].slots, sized[3 * RATE].slots
    assert cost is not None and low is not None and high is not None and low < high
    # From 07:45 to 08:30 at the peak's plan, 45 minutes of 24 hours.
    assert cost.slot_hours == pytest.approx(0.75 * high + 23.25 * low)
    assert cost.peak_slot_hours == 24 * high
    assert cost.dollars is None and cost.saved_dollars is None  # the cluster states no price
    apart = sizes_apart(planned, JOB, [RATE, 3 * RATE])  # in a process of its own, as for the page
    assert [(one.rate, one.slots, one.price_per_hour) for one in apart.sizes] == [
        (RATE, low, None),
        (3 * RATE, high, None),
    ]
