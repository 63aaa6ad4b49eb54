"""The MST of one job that reads Kafka, by three ways that know nothing of one another: on a real Flink and a real broker.

    python -m benchmarks.flink.kafka_mst [--flink-version 2.3] [--count-us 3000]

The program (`running/kafka_job/`) knows nothing of Sluice, and its steps wait instead of computing. One task each, one
TaskManager:

1. as `sluice plan --feed kafka` does: topics that are fed, what the sources read counted by Flink (`FedRun`);
2. by injection: rate after rate, and whether the lag of the consumer group grows, from offsets alone;
3. by drain: the job starts behind a full topic, and the steepest fall of the lag counts.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.running.kafka_job.program import program_jar
from models.capacity.backlog.drain import DrainMeasurement, DrainSettings
from models.capacity.backlog.injection import InjectionSearch, InjectionSettings
from models.errors import InvalidInput
from models.job import Job
from pipelines.measuring.estimate import SHORT, search_mst
from testbeds.flink.fed_run import FedRun
from testbeds.flink.local.distribution import RELEASES, Release
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import Payment
from testbeds.flink.programs.user_programs import BROKERS, UserJar, planned_job
from testbeds.flink.submission import Submission
from testbeds.kafka.feeding.feeder import GeneratedFeed
from testbeds.kafka.measuring import drain, inject
from testbeds.kafka.offsets import OffsetReader
from testbeds.kafka.supply import FedTopic, FedTopics, KafkaFeed, KafkaSupply

TOPIC, GROUP, PARTITIONS = "events", "kafka-mst", 4
CHECKPOINTS: Final = {"execution.checkpointing.interval": "2 s"}
"""A group commits with each."""
LONGER: Final = {"ramp_s": 10.0, "observe_s": 30.0}
"""A commit is as late as its checkpoint took, which is more the fuller the buffers are."""
FILL_RATE: Final = 20_000.0
MOST_RATE: Final = 50_000.0
FIRST_BACKLOG_S: Final = 60.0


@dataclass
class Lab:
    """What is started once; one job runs at a time."""

    cluster: LocalCluster
    supply: KafkaSupply
    program: UserJar
    job: Job
    running: str | None = None

    @property
    def submission(self) -> Submission:
        address = self.supply.connection.bootstrap
        return Submission(self.cluster, self.job, address, 0, self.program, Payment.PACED, CHECKPOINTS)

    @property
    def tasks(self) -> dict[str, int]:
        return dict.fromkeys(self.job.order, 1)

    def start(self) -> None:
        self.running = self.submission.start(self.tasks, None).id

    def stop(self) -> None:
        if self.running is not None:
            self.cluster.rest.cancel(self.running)
        self.running = None

    def reader(self) -> OffsetReader:
        """Of the job's group, once it has committed."""
        connection = self.supply.connection
        until = time.monotonic() + 120
        while True:
            try:
                found = OffsetReader(connection, [TOPIC], GROUP)
                if found.read().lag is not None or time.monotonic() > until:
                    return found
            except InvalidInput:  # there is no such group yet
                if time.monotonic() > until:
                    raise
            time.sleep(0.5)


@contextmanager
def lab(release: Release, count_us: int) -> Iterator[Lab]:
    feed = KafkaFeed((FedTopic(TOPIC, PARTITIONS, GeneratedFeed(TOPIC)),))
    with tempfile.TemporaryDirectory() as folder, LocalCluster(release=release) as cluster, KafkaSupply(feed) as supply:
        jar = program_jar(Path(folder), release)
        costs = ("600", str(count_us), "600", "0.0", "false")
        program = UserJar(jar, "KafkaJob", (BROKERS, TOPIC, GROUP, *costs), feed)
        cluster.ensure(Profile((TaskManager("tm1", 8, 1400.0),)))
        yield Lab(cluster, supply, program, planned_job(program, "kafka-job", cluster))


def as_planned(lab: Lab, fed: FedTopics, _: float) -> float | None:
    deployed = lab.submission.start(lab.tasks, None)
    with FedRun(lab.submission, deployed, "fed", lambda: None, fed, say=print) as run:
        expected = run.warm_up()
        settings = SHORT.model_copy(update={"warmup_rate": 2 * expected})
        return search_mst(run, settings)[0].mst


def by_injection(lab: Lab, fed: FedTopics, expected: float) -> float | None:
    settings = InjectionSettings(search=SHORT.model_copy(update=LONGER), most_rate=MOST_RATE, first_rate=expected / 4)
    search = InjectionSearch(settings)
    lab.start()
    fed.offer(settings.first_rate)
    inject(search, fed.feeder, fed.shares, lab.reader())
    lab.stop()
    print(search.reason, *search.history, sep="\n")
    return search.mst


def by_drain(lab: Lab, fed: FedTopics, expected: float) -> float | None:
    backlog = FIRST_BACKLOG_S * expected
    measurement = DrainMeasurement(DrainSettings(first_backlog=backlog, most_backlog=8 * backlog))

    def fill(records: float) -> None:
        begun = fed.feeder.report(TOPIC).emitted_in_all
        fed.offer(FILL_RATE)
        while fed.feeder.report(TOPIC).emitted_in_all < begun + records:
            time.sleep(0.1)
        fed.offer(0.0)

    drain(measurement, fill, lab.start, lab.stop, lab.reader, left_share=0.05)
    return measurement.mst


WAYS: Final[dict[str, Callable[[Lab, FedTopics, float], float | None]]] = {
    "as planned": as_planned,
    "by injection": by_injection,
    "by drain": by_drain,
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flink-version", choices=sorted(RELEASES), default="1.20")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--count-us", type=int, default=3000, help="what the slow step waits for each record")
    options = parser.parse_args(arguments)
    table = Table("way", "MST, records/s", "off the drain", "took, s")
    found: dict[str, tuple[float | None, float]] = {}
    with lab(RELEASES[options.flink_version], options.count_us) as started:
        for name in options.ways.split(","):
            begun = time.monotonic()
            with started.supply.feed() as fed:
                found[name] = WAYS[name](started, fed, 1e6 / options.count_us), time.monotonic() - begun
            print(name, found[name])
    drained = found.get("by drain", (None, 0.0))[0]
    for name, (mst, took_s) in found.items():
        off = "-" if not mst or not drained else f"{mst / drained - 1:+.1%}"
        table.add_row(name, "-" if mst is None else f"{mst:,.0f}", off, f"{took_s:.0f}")
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
