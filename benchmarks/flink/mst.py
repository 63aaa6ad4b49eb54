"""The MST of a configuration on a real Flink, three times on one running job, and the rates around it (StreamBed section 4).

    python -m benchmarks.flink.mst [costed] [q1] [--minutes 5]

`costed` is a job of operators with stated costs: its capacity can be calculated by hand, and is the same on any machine.
q1 is SQL with real CPU costs, on TaskManagers limited to 0.15 cores, so other load on the machine matters.
Rates around the MST are then offered for minutes: 95 % of it must be sustained, at 130 % the backlog must grow.
"""

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final

from rich.console import Console
from rich.table import Table

from models.capacity.mst import MstSearch, MstSettings
from models.cluster import Cluster
from models.job import Job
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.inputs.programs import job_program
from pipelines.measuring.estimate import search_mst
from testbeds.flink.lab.stolen import StolenTime
from testbeds.flink.testbed import FlinkTestbed
from testbeds.protocol import Configuration, Run
from testbeds.suite import small_job

SETTINGS: Final = MstSettings(
    warmup_s=20.0, cooldown_s=0.0, ramp_s=5.0, observe_s=10.0, iterations=8, sensitivity=0.02, bracket=0.15
)
"""Steps of 2 %: three estimates can only agree within 5 % if each is more precise than that. With windows of 30 s, as in
StreamBed, estimates of q1 differed more, since the speed of a virtual machine's processors drifts over minutes.
"""
REPEATS: Final = 3
WITHIN: Final = 0.05
SUSTAINED, TOO_MUCH = 0.95, 1.3
OVERLOAD_S: Final = 60.0
MEMORY_MB: Final = 1024.0
COSTED_RATE: Final = 5000.0
"""Records/s that the costed job takes: its `count` takes every second record."""
SEED: Final = 1


@dataclass(frozen=True)
class Subject:
    """A job and where it runs."""

    job: Job
    testbed: FlinkTestbed
    expected: float | None
    """MST by hand, records/s."""


def costed() -> Subject:
    """The conformance suite's small job, slowed down until `count` takes COSTED_RATE / 2."""
    small = small_job()
    factor = 2 / (COSTED_RATE * small.operator("count").cost.cpu_s)
    operators = tuple(
        o.model_copy(update={"cost": o.cost.model_copy(update={"cpu_s": factor * o.cost.cpu_s})})
        for o in small.operators
    )
    cluster = Cluster.model_validate({"name": "local", "count": 1, "slots": 4, "cores": 4, "memory_mb": MEMORY_MB})
    job = small.model_copy(update={"name": "costed", "operators": operators})
    return Subject(job, FlinkTestbed(cluster, [MEMORY_MB]), COSTED_RATE)


def q1() -> Subject:
    found = job_program("nexmark-q1")
    assert found is not None
    testbed = FlinkTestbed(load_cluster("flink-local"), [MEMORY_MB], program=found.program)
    return Subject(load_job("nexmark-q1"), testbed, None)


SUBJECTS: Final = {"costed": costed, "q1": q1}


@contextmanager
def running(subject: Subject) -> Iterator[Run]:
    configuration = Configuration(dict.fromkeys(subject.job.order, 1), MEMORY_MB)
    with subject.testbed as testbed, testbed.deploy(subject.job, configuration, run="flink-mst", seed=SEED) as run:
        yield run


def estimates(run: Run, table: Table, name: str) -> list[float]:
    """The MST, estimated repeatedly on the running job."""
    found = []
    for i in range(REPEATS):
        began, stolen = time.monotonic(), StolenTime()
        search, _ = search_mst(run, SETTINGS)
        assert search.mst is not None, search.reason
        found.append(search.mst)
        took = f"{time.monotonic() - began:.0f}"
        table.add_row(name, f"{i + 1}", f"{search.mst:,.0f}", targets(search), took, f"{stolen.share():.0%}")
    return found


def targets(search: MstSearch) -> str:
    return ", ".join(f"{trial.target_rate:,.0f}{'' if trial.sustained else ' not'}" for trial in search.history)


def replayed(run: Run, table: Table, name: str, rate: float, share: float, seconds: float) -> None:
    """Offer a rate for some minutes, and log each minute."""
    run.inject(0.5 * rate, 5.0, "cooldown")
    part_s = 60.0 if seconds > OVERLOAD_S else 15.0
    for i in range(round(seconds / part_s)):
        stolen = StolenTime()
        window = run.inject(rate, part_s, "observe")
        cells = (f"{(i + 1) * part_s:.0f}", f"{rate:,.0f}", f"{window.achieved_rate:,.0f}")
        kept = window.achieved_rate / rate
        backlog = f"{window.pending_records:,.0f}"
        table.add_row(name, f"{share:.0%}", *cells, f"{kept:.2%}", backlog, f"{stolen.share():.0%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", choices=[[], *SUBJECTS], help="jobs to measure; default: both")
    parser.add_argument("--mst", type=float, help="offer rates around this known MST instead of estimating it")
    parser.add_argument("--minutes", type=float, default=5.0, help="how long the lower rate is offered")
    asked = parser.parse_args()
    console = Console(width=160)
    for name in asked.jobs or SUBJECTS:
        subject = SUBJECTS[name]()
        repeats = Table(
            "job", "estimate", "MST, records/s", "targets", "s", "stolen", title=f"MST of {name} with one task each"
        )
        replays = Table("job", "of MST", "s", "offered/s", "achieved/s", "share", "backlog", "stolen", title="Replayed")
        with running(subject) as run:
            if asked.mst is None:
                found = estimates(run, repeats, name)
                spread = max(found) / min(found) - 1
                by_hand = "" if subject.expected is None else f"; {subject.expected:,.0f} by hand"
                repeats.caption = f"{spread:.1%} apart (within {WITHIN:.0%} asked for){by_hand}"
                console.print(repeats)
            mst = asked.mst or median(found)
            replayed(run, replays, name, SUSTAINED * mst, SUSTAINED, 60 * asked.minutes)
            replayed(run, replays, name, TOO_MUCH * mst, TOO_MUCH, OVERLOAD_S)
        console.print(replays)


if __name__ == "__main__":
    main()
