"""A broker, a Flink, and many jobs that read the same topic: each with a consumer group of its own."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.autopilot.acting.jobs import PARTITIONS, JobKind
from benchmarks.running.kafka_job.program import program_jar
from flink_client.rest.answers import Vertex
from flink_client.rest.client import FlinkRest
from testbeds.flink.local.distribution import Release
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.feeding.feeder import GeneratedFeed, KafkaFeeder
from testbeds.kafka.topics import Topics

START_S: Final = 240.0
TASK_MANAGERS: Final = 3
MEMORY_MB: Final = 2400.0
DIRECT_MB: Final = 1024
CACHED_BYTES: Final = 1 << 18
"""Of a buffer that a thread keeps."""
VALUE_BYTES: Final = 400
KEYS: Final = 10_000
SETTINGS: Final[Mapping[str, str]] = {
    "taskmanager.memory.segment-size": "4kb",
    "state.backend.type": "hashmap",
    "metrics.fetcher.update-interval": "1000",
    "cluster.evenly-spread-out-slots": "true",
    "taskmanager.load-balance.mode": "SLOTS",
    "web.refresh-interval": "500",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "100",
    "restart-strategy.fixed-delay.delay": "1 s",
    "state.latency-track.keyed-state-enabled": "false",
}


@dataclass(frozen=True)
class ManyJobsTaskManager(TaskManager):
    """With direct memory for the Kafka clients of many jobs, each of which keeps buffers of its own."""

    def jvm_flags(self) -> list[str]:
        kept = [flag for flag in super().jvm_flags() if not flag.startswith("-XX:MaxDirectMemorySize")]
        return [*kept, f"-XX:MaxDirectMemorySize={DIRECT_MB}m", f"-Djdk.nio.maxCachedBufferSize={CACHED_BYTES}"]


@dataclass(frozen=True)
class Entered:
    """A job that runs."""

    name: str
    """Of its consumer group, too."""
    id: str
    tasks: Mapping[str, int]
    """That it starts with, by vertex id."""


@dataclass(frozen=True)
class ActingLab:
    """What is started once."""

    cluster: LocalCluster
    broker: LocalBroker
    topics: Topics
    jar: str

    @property
    def rest(self) -> FlinkRest:
        return self.cluster.rest

    @contextmanager
    def fed(self, topics: Sequence[str]) -> Iterator[KafkaFeeder]:
        """New topics, and what feeds them."""
        for topic in topics:
            self.topics.create(topic, PARTITIONS)
        feeds = [GeneratedFeed(topic, keys=KEYS, value_bytes=VALUE_BYTES) for topic in topics]
        with KafkaFeeder(self.broker.connection, feeds) as feeder:
            yield feeder

    def enter(self, kind: JobKind, name: str, topic: str, rate_real: float) -> Entered:
        """Start a job with the tasks that a rate of real time needs."""
        program = kind.program(self.broker.connection.bootstrap, topic, name)
        vertices = _named(self.rest.plan(self.jar, program)[0], kind)
        tasks = {vertices[step]: n for step, n in kind.tasks(rate_real).items()}
        return Entered(name, self.rest.run(self.jar, program), tasks)

    def wait_until_running(self, jobs: list[Entered]) -> None:
        """With their tasks: asked for once they run, since Flink 2 ignores overrides of a program that is submitted."""
        for job in jobs:
            self.rest.wait_until_running(job.id, START_S)
            self.rest.require(job.id, job.tasks)
        for job in jobs:
            self.rest.wait_until_running(job.id, START_S, job.tasks)


def _named(planned: tuple[Vertex, ...], kind: JobKind) -> dict[str, str]:
    """Vertices by the steps: both are in the order of the dataflow, which is a line."""
    return {step: vertex.id for step, vertex in zip(kind.steps, planned, strict=True)}


@contextmanager
def acting_lab(release: Release, slots: int) -> Iterator[ActingLab]:
    """
    Args:
        slots: of all TaskManagers.
    """
    with tempfile.TemporaryDirectory() as folder, LocalBroker() as broker, LocalCluster(release=release) as cluster:
        broker.start()
        each = -(-slots // TASK_MANAGERS)
        managers = tuple(ManyJobsTaskManager(f"tm{i}", each, MEMORY_MB, managed_mb=64.0) for i in range(TASK_MANAGERS))
        cluster.ensure(Profile(managers, SETTINGS))
        with Topics(broker.connection) as topics:
            jar = cluster.rest.upload(program_jar(Path(folder), release))
            yield ActingLab(cluster, broker, topics, jar)


def real_sleep_until(at_real_s: float, begin: float) -> None:
    """Sleep until so many seconds after `begin` by `time.monotonic`."""
    time.sleep(max(0.0, begin + at_real_s - time.monotonic()))
