"""A check: a job with given tasks runs on a plan's TaskManagers, and what it does is measured. Kept as it ends."""

import os
import time
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from pydantic import Field

from benchmarks.objectives.planning import CHECKPOINTS_S, FOLDER, Program
from benchmarks.objectives.running import RESTART_S, Running, running
from benchmarks.objectives.scores import LagScore, RecoveryScore, lag_score, recovery_score
from models.objectives.objectives import Objectives
from models.plan.content import Plan
from models.schema import Format, NonNegative, Positive, PositiveInt
from pipelines.store.digests import digest
from testbeds.flink.lab.stolen import StolenTime
from testbeds.kafka.supply import KafkaSupply

SETTLE_S: Final = 40.0
"""At least; half as long at half the rate, in which code is compiled."""
MOST_SETTLE_S: Final = 120.0
LATE_S: Final = 30.0
"""How much later than promised a recovery is waited for."""
_AFTER_S: Final = 5.0


class Checked(Format):
    """A job with given tasks, and what was measured of it."""

    rate: Positive = Field(description="Records/s that the plan is for.")
    tasks: dict[str, PositiveInt] = Field(description="Of each operator.")
    began: str = Field(description="UTC.")
    lag: LagScore = Field(description="Before the outage.")
    recovery: RecoveryScore | None = Field(description="Null where no recovery is an objective.")
    task_managers: PositiveInt = Field(description="That ran tasks.")
    usd_per_hour: NonNegative = Field(description="Of these.")
    load: tuple[float, float] = Field(description="Load average over a minute, at the begin and at the end.")
    stolen: NonNegative = Field(description="Share of the processor time that the hypervisor took meanwhile.")


def checked(program: Program, plan: Plan, tasks: Mapping[str, int], supply: KafkaSupply, observe_s: float) -> Checked:
    """Run the job with these tasks, unless that is kept already."""
    assert plan.objectives is not None
    asked, name = plan.objectives.asked, digest([plan.objectives.asked, plan.target_rate, dict(tasks), observe_s])[:12]
    key = f"{FOLDER}/checks/{name}/checked.json"
    if program.workspace.exists(key):
        return program.workspace.read(key, Checked)
    made, series = _made(program, plan, tasks, supply, asked, observe_s)
    program.workspace.write_table(f"{FOLDER}/checks/{name}/series.parquet", series)
    program.workspace.write(key, made)
    return made


def _made(
    program: Program, plan: Plan, tasks: Mapping[str, int], supply: KafkaSupply, asked: Objectives, observe_s: float
) -> tuple[Checked, pa.Table]:
    began, load, stolen = time.gmtime(), os.getloadavg()[0], StolenTime()
    with running(program, plan, tasks, supply) as run:
        _settle(run)
        begin = run.recorder.now_s
        time.sleep(observe_s)
        end = run.recorder.now_s
        outage = None if asked.recovery is None else _outage(run, asked)
        series, managers = run.recorder.series(), run.task_managers()
    assert plan.resources is not None and plan.resources.price_per_hour is not None
    price = float(plan.resources.price_per_hour) / plan.resources.task_managers
    made = Checked(
        rate=plan.target_rate,
        tasks=dict(tasks),
        began=time.strftime("%Y-%m-%d %H:%M:%S", began),
        lag=lag_score(series, begin, end, 0.99 if asked.lag is None else asked.lag.share),
        recovery=None if outage is None else recovery_score(series, *outage),
        task_managers=managers,
        usd_per_hour=managers * price,
        load=(load, os.getloadavg()[0]),
        stolen=stolen.share(),
    )
    return made, series


def _settle(run: Running) -> None:
    """Until no more than a second's records wait; a job that does not get there is measured as it is."""
    run.offer(run.rate / 2)
    time.sleep(SETTLE_S / 2)
    run.offer(run.rate)
    time.sleep(SETTLE_S / 2)
    until = run.recorder.now_s + MOST_SETTLE_S - SETTLE_S
    while run.waiting() > run.rate and run.recorder.now_s < until:
        time.sleep(1.0)


def _outage(run: Running, asked: Objectives) -> tuple[float, float]:
    """Stop the job and start it again; returns when.

    The outage that is stated holds what is read again after it, of which there is at most a checkpoint interval, and the
    restart unless that is stated apart.
    """
    assert asked.recovery is not None
    stopped = run.recorder.now_s
    run.stop()
    restart_s = 0.0 if asked.recovery.restart_s else RESTART_S
    time.sleep(max(0.0, stopped + asked.recovery.outage_s - CHECKPOINTS_S - restart_s - run.recorder.now_s))
    started = run.recorder.now_s
    run.start()
    run.wait_until_it_reads()
    until = run.recorder.now_s + asked.recovery.within_s + LATE_S
    while run.recorder.now_s < until and run.waiting() > run.rate:
        time.sleep(1.0)
    time.sleep(_AFTER_S)
    return stopped, started
