"""Programs that were not written here: observed, planned from running, the plan applied; true rates beside those of a drain.

    python -m benchmarks.running.unmodified_programs [--programs SQL,WindowJoin,...] [--flink-version 1.20] [--share 0.6] ...

Starts a Flink of one TaskManager and, for the programs that read it, a Kafka broker and a feeder. Each program is submitted
as it is (`unmodified/`), with one task of each vertex. Then:

1. A program that reads Kafka starts behind a backlog, and what it takes is measured by the fall of its lag (a drain). While
   it catches up, it is observed. Its topic is fed meanwhile, with what it is fed at 2: feeder and broker take processors of
   the same machine, so that without them the job is another fifth faster. Where it takes another rate than was thought, the
   drain is repeated.
2. It is fed with a share of that, or makes up records at the rate that its arguments say, and is observed.
3. A plan is made from what was observed, applied to the running job, and verified: for 1.5 times the rate or, of a program
   that makes up its records, 1.5 times the MST.

Off: the rates of useful time at 2 beside those at 1, of the vertices that are busy for a tenth of the time or more, and
whether their intervals hold these; and the MST that was computed at 2 beside that of the drain.
"""

import argparse
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.running.unmodified.lab import NOTES, START_S, Lab, Running, feeder_of, lab
from benchmarks.running.unmodified.programs import PROGRAMS, Program, Topic
from flink_client.rest.client import FlinkRest
from flink_client.rest.waiting import wait_for
from models.capacity.backlog.drain import DrainMeasurement, DrainSettings
from models.capacity.observed.record import ObservedJob
from models.errors import SluiceError
from pipelines.apply.application import apply
from pipelines.apply.preparation import prepare
from pipelines.observe.observation import Observed, observe_job, running_job_id
from pipelines.observe.planning import RunningRequest, plan_running
from pipelines.planning.planned_job import job_of
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from pipelines.terminal.observation_tables import observed_view
from testbeds.kafka.feeding.feeder import KafkaFeeder
from testbeds.kafka.measuring import drain, point_of
from testbeds.kafka.offsets import OffsetReader

SETTLE_S: Final = 20.0
GROWTH: Final = 1.5
WARMUP_S: Final = 20.0
WINDOW_S: Final = 20.0
DRAINED_S: Final = 50.0
"""How long a backlog would last without what is fed meanwhile."""
FILL_RATE: Final = 250_000.0
LEFT: Final = 0.1
"""Seconds of records, to which a backlog is worked off before the job is fed."""
LEAST_BUSY: Final = 0.1
MOST_DRAINS: Final = 3
CLOSE: Final = 0.2
"""By how much of what was thought a drain may differ, and is not repeated."""


@dataclass
class Drained:
    """What a drain gave."""

    measurement: DrainMeasurement
    seen: list[ObservedJob] = field(default_factory=list)
    """While it caught up."""


def drained(running: Running, topic: Topic, feeder: KafkaFeeder, seconds: float, share: float) -> Drained:
    """The MST by drain, and what is observed meanwhile."""
    settings = DrainSettings(
        first_backlog=DRAINED_S * topic.about,
        most_backlog=5 * DRAINED_S * topic.about,
        warmup_s=WARMUP_S,
        window_s=WINDOW_S,
    )
    found = Drained(DrainMeasurement(settings))
    observing: list[Future[Observed]] = []

    def fill(records: float) -> None:
        begun = feeder.report(topic.name).emitted_in_all
        feeder.offer({topic.name: FILL_RATE})
        while feeder.report(topic.name).emitted_in_all < begun + records:
            time.sleep(0.1)
        feeder.offer({topic.name: share * topic.about})

    def reader() -> OffsetReader:
        assert running.job is not None
        observing.append(pool.submit(_observed_later, running.lab, running.job, WARMUP_S, seconds))
        return OffsetReader(running.lab.broker.connection, [topic.name], topic.group)

    with ThreadPoolExecutor(1) as pool:
        drain(found.measurement, fill, running.start, running.stop, reader, left_share=0.05)
        for one in observing:
            try:
                found.seen.append(one.result().job)
            except SluiceError as error:
                NOTES.print(f"note: not observed while it caught up: {error}", markup=False)
    return found


def drained_as_fed(
    running: Running, topic: Topic, feeder: KafkaFeeder, seconds: float, share: float
) -> tuple[Drained, Topic]:
    """The drain, repeated where the program takes another rate than was thought: it is fed by that rate meanwhile.

    Returns:
        The last drain, and the topic with what the program takes.
    """
    for _ in range(MOST_DRAINS):
        found = drained(running, topic, feeder, seconds, share)
        NOTES.print(f"drain, fed with {share * topic.about:,.0f}/s: {found.measurement.reason}", markup=False)
        known, topic = topic, replace(topic, about=found.measurement.mst or topic.about)
        if abs(topic.about / known.about - 1) < CLOSE:
            break
    return found, topic


def _observed_later(lab: Lab, job: str, later_s: float, seconds: float) -> Observed:
    time.sleep(later_s)
    with FlinkRest(lab.rest.url) as rest:
        return observe_job(rest, job, seconds, Workspace(lab.folder / "drained"), Quiet(), lab.bootstrap)


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    program: str
    flink: str
    rate: str = "-"
    vertices: str = "-"
    arriving: str = "-"
    lag: str = "-"
    drain: str = "-"
    mst: str = "-"
    off: str = "-"
    true_rates: str = "-"
    plan: str = "-"
    applied: str = "-"


HEADS: Final = (
    *("program", "Flink", "records/s", "vertices", "arriving", "lag", "MST by drain", "MST computed", "off"),
    *("true rates off", "tasks, now and planned", "applied"),
)


def measured(lab: Lab, program: Program, rate: float, seconds: float, share: float) -> Row:
    """Drain, observe, plan and apply one program."""
    start = Row(program.name, lab.rest.flink_version())
    with feeder_of(lab, program) as feeder:
        jar = lab.cluster.uploaded(program.jar(lab.folder, lab.release))
        running = Running(lab, program, jar, program.program(lab.bootstrap, rate))
        try:
            running.start()
            if feeder is None or program.topic is None:
                time.sleep(SETTLE_S)
                return _planned(start, running, rate, None, seconds)
            topic = program.topic
            feeder.offer({topic.name: topic.about / 10})
            time.sleep(SETTLE_S)
            behind, topic = drained_as_fed(running, topic, feeder, min(seconds, 40.0), share)
            feeder.offer({topic.name: 0.0})
            rate = share * topic.about
            running.start()
            reader = OffsetReader(lab.broker.connection, [topic.name], topic.group)
            most_s = START_S + 2 * point_of(reader).lag / topic.about
            wait_for(lambda: point_of(reader).lag < LEFT * topic.about or None, most_s, "the end of the backlog")
            feeder.offer({topic.name: rate})
            time.sleep(SETTLE_S)
            return _planned(start, running, rate, behind, seconds)
        except SluiceError as error:
            NOTES.print(f"{program.name}: {error}", markup=False)
            return _said(start, lab, program, error)
        finally:
            running.cancel()


def _said(row: Row, lab: Lab, program: Program, error: SluiceError) -> Row:
    return Row(**(vars(row) | {"applied": f"{error!s:.160}"}))


def _planned(start: Row, running: Running, rate: float, behind: Drained | None, seconds: float) -> Row:
    lab = running.lab
    assert running.job is not None
    workspace = Workspace(lab.folder / "workspace" / running.program.name)
    kafka = None if running.program.topic is None else lab.bootstrap
    named = running_job_id(lab.rest, running.job)
    seen = observe_job(lab.rest, named, seconds, workspace, Quiet(), kafka)
    NOTES.print(observed_view(seen.job))
    row = vars(start) | _observed_columns(seen.job, rate) | _beside(seen.job, behind)
    try:
        asked = RunningRequest(GROWTH * _to_grow_from(seen.job, kafka))
        plan = plan_running(lab.rest, seen, asked, workspace, Quiet())
        now = {seen.operators[v.id]: v.parallelism for v in seen.job.vertices}
        row["plan"] = ", ".join(f"{now.get(name)}-{tasks}" for name, tasks in plan.parallelism.items())
        todo = prepare(lab.rest, plan, job_id=named, vertices=None, job_file=job_of(workspace, plan), program=None)
        done = apply(lab.rest, todo, timeout_s=START_S, observe_s=30.0)
        row["applied"] = f"{done.outcome}: {done.reason}"
    except SluiceError as error:
        row["applied"] = str(error)
    return Row(**row)


def _to_grow_from(seen: ObservedJob, kafka: str | None) -> float:
    """What is fed; where that is far from what the job takes, its MST, so that the plan has more tasks."""
    taken = seen.consumed_rate or 1.0
    return taken if kafka is not None or seen.capacity is None else seen.capacity.mst.value


def _observed_columns(seen: ObservedJob, rate: float) -> dict[str, str]:
    capacity = seen.capacity
    off = f" ({seen.arriving_rate / rate - 1:+.1%})" if rate and seen.arriving_rate is not None else ""
    return {
        "rate": f"{rate:,.0f}" if rate else "its own",
        "vertices": str(len(seen.vertices)),
        "arriving": "unknown" if seen.arriving_rate is None else f"{seen.arriving_rate:,.1f}{off}",
        "lag": "not reported" if seen.lag_records is None else f"{seen.lag_records:,.0f}",
        "mst": "unknown"
        if capacity is None
        else f"{capacity.mst.value:,.0f} ({capacity.mst.low:,.0f} to {capacity.mst.high:,.0f})",
    }


def _beside(seen: ObservedJob, behind: Drained | None) -> dict[str, str]:
    """What was observed beside the drain."""
    if behind is None or behind.measurement.mst is None:
        return {}
    mst = behind.measurement.mst
    found = {"drain": f"{mst:,.0f}"}
    if seen.capacity is not None:
        found["off"] = f"{seen.capacity.mst.value / mst - 1:+.0%}"
    if behind.seen:
        NOTES.print(observed_view(behind.seen[-1]))
        then = {v.id: v.true_rate for v in behind.seen[-1].vertices}
        offs = [
            f"{v.true_rate / rate - 1:+.0%}{'' if v.saturated_rate.low <= rate <= v.saturated_rate.high else ' outside'}"
            for v in seen.vertices
            if v.true_rate and v.saturated_rate and (rate := then.get(v.id)) and (v.busyness or 0.0) >= LEAST_BUSY
        ]
        found["true_rates"] = ", ".join(offs) or "-"
        caught = behind.seen[-1].capacity
        if caught is not None and caught.seen:
            found["drain"] += f" (seen: {caught.mst.value:,.0f})"
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", default=",".join(one.name for one in PROGRAMS))
    parser.add_argument("--flink-version", default="1.20")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each observation takes")
    parser.add_argument("--share", type=float, default=0.6, help="what a program that reads Kafka is fed, of its MST")
    options = parser.parse_args(arguments)
    wanted = options.programs.split(",")
    if unknown := set(wanted) - {one.name for one in PROGRAMS}:
        parser.error(
            f"--programs must be of {', '.join(one.name for one in PROGRAMS)}, but got {', '.join(sorted(unknown))}"
        )
    chosen = [one for one in PROGRAMS if one.name in wanted and options.flink_version in one.releases]
    table = Table(*HEADS)
    with lab(options.flink_version) as started:
        for program in chosen:
            for rate in program.rates:
                row = measured(started, program, rate, options.seconds, options.share)
                NOTES.print(*vars(row).values(), sep=" | ", markup=False)
                table.add_row(*vars(row).values())
    Console(width=260).print(table)


if __name__ == "__main__":
    main()
