"""A broker and a Flink, and a program there that runs, is stopped with a savepoint, and is fed."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from benchmarks.running.unmodified.programs import GENERATORS_RELEASE, Program, StateMachine
from flink_client.jobs.running import has_ended
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from flink_client.rest.waiting import wait_for
from models.errors import SluiceError
from testbeds.flink.local.distribution import release_of
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.feeding.feeder import Feed, GeneratedFeed, KafkaFeeder
from testbeds.kafka.feeding.replay import TopicRecording, replayed
from testbeds.kafka.offsets import OffsetReader
from testbeds.kafka.recording.sampling import TopicRange
from testbeds.kafka.recording.topic_file import ValueColumns, record
from testbeds.kafka.topics import Topics

START_S: Final = 180.0
SAMPLE: Final = 200_000
"""Events of the state machine that are recorded, and replayed."""
NOTES: Final = Console(stderr=True, width=180)


@dataclass(frozen=True)
class Lab:
    """What is started once for a version of Flink."""

    cluster: LocalCluster
    broker: LocalBroker
    topics: Topics
    folder: Path
    release: str

    @property
    def rest(self) -> FlinkRest:
        return self.cluster.rest

    @property
    def bootstrap(self) -> str:
        return self.broker.connection.bootstrap


@contextmanager
def lab(release: str) -> Iterator[Lab]:
    """A broker and a Flink."""
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalBroker() as broker,
        LocalCluster(release=release_of(release)) as cluster,
    ):
        broker.start()
        settings = {"taskmanager.network.memory.buffer-debloat.enabled": "false"}
        cluster.ensure(Profile((TaskManager("tm1", 6, 2048.0),), settings))
        with Topics(broker.connection) as topics:
            yield Lab(cluster, broker, topics, Path(folder), release)


@dataclass
class Running:
    """A program that runs, or was stopped with a savepoint."""

    lab: Lab
    program: Program
    jar: str
    submitted: JarProgram
    job: str | None = None
    savepoint: str | None = None

    def start(self) -> None:
        before = {one["jid"] for one in self.lab.rest.get("/jobs/overview")["jobs"]}
        try:
            self.job = self.lab.rest.run(self.jar, self.submitted, savepoint=self.savepoint)
        except SluiceError as error:
            # A program may fail after it has submitted its job, as one that waits for it to end.
            jobs = [j for j in self.lab.rest.get("/jobs/overview")["jobs"] if j["jid"] not in before]
            if not jobs:
                raise
            NOTES.print(f"note: the program's main method failed once its job ran: {error!s:.300}", markup=False)
            self.job = str(jobs[0]["jid"])
        self.lab.rest.wait_until_running(self.job, START_S)

    def stop(self) -> None:
        """With a savepoint."""
        if self.job is not None:
            self.savepoint = self.lab.rest.savepoint(self.job, None, cancel=True)
            ended = partial(has_ended, self.lab.rest, self.job)
            wait_for(lambda: ended() or None, 60.0, "the end of the job")
        self.job = None

    def cancel(self) -> None:
        if self.job is not None:
            self.lab.rest.cancel(self.job)


@contextmanager
def feeder_of(lab: Lab, program: Program) -> Iterator[KafkaFeeder | None]:
    """What feeds its topic, if it reads one; its topics are created."""
    for name in program.writes:
        lab.topics.create(name, 1)
    if program.topic is None:
        yield None
        return
    lab.topics.create(program.topic.name, program.topic.partitions)
    feed: Feed = GeneratedFeed(program.topic.name)
    if isinstance(program, StateMachine):
        feed = replayed(program.topic.name, [TopicRecording(program.topic.name, _recorded(lab, program))])
    with KafkaFeeder(lab.broker.connection, [feed]) as feeder:
        yield feeder


def _recorded(lab: Lab, program: StateMachine) -> Path:
    """Events that Flink's own generator of them has written, on a Flink of its release."""
    (topic,) = program.writes
    with LocalCluster(release=release_of(GENERATORS_RELEASE)) as cluster:
        cluster.ensure(Profile((TaskManager("tm1", 2, 1024.0),)))
        jar = cluster.uploaded(program.jar(lab.folder, GENERATORS_RELEASE))
        job = cluster.rest.run(jar, program.generator(lab.bootstrap, topic, SAMPLE / 10))
        ends = OffsetReader(lab.broker.connection, [topic])
        wait_for(lambda: sum(p.end for p in ends.read().partitions) >= SAMPLE or None, START_S, "events to record")
        cluster.rest.cancel(job)
        wait_for(lambda: has_ended(cluster.rest, job) or None, 60.0, "the end of the generator")
    file = lab.folder / "events.parquet"
    record(lab.broker.connection, topic, file, TopicRange(SAMPLE), ValueColumns.NONE)
    return file
