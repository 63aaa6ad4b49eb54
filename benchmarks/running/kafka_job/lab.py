"""A broker and a Flink, and jobs there whose topics are fed."""

import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.running.kafka_job.program import Kind, program_jar
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from pipelines.observe.observation import Observed, observe_job
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import Release
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.feeding.feeder import GeneratedFeed, KafkaFeeder
from testbeds.kafka.topics import Topics

SETTLE_S: Final = 25.0
START_S: Final = 180.0
FETCHED_S: Final = 1.0
"""Time in which Flink fetches the metrics that it was asked for."""
KEYS: Final = 1000
KILLED_AFTER_S: Final = 30.0
OUTAGE: Final = "25 s"
SLOTS: Final = 32
"""Of each TaskManager: all jobs fit into one."""


@dataclass(frozen=True)
class Lab:
    """What is started once."""

    cluster: LocalCluster
    broker: LocalBroker
    topics: Topics
    jar: str
    workspace: Workspace
    restarting: threading.Barrier
    """All jobs are observed when the TaskManager is killed."""

    @property
    def rest(self) -> FlinkRest:
        return self.cluster.rest


@contextmanager
def lab(release: Release, restarting: int, kill_idle: bool = False) -> Iterator[Lab]:
    """A broker and a Flink.

    Args:
        restarting: how many jobs are observed when a TaskManager is killed.
        kill_idle: whether that is the one with the fewest tasks.
    """
    with tempfile.TemporaryDirectory() as folder, LocalBroker() as broker, LocalCluster(release=release) as cluster:
        broker.start()
        settings = {
            "taskmanager.network.memory.buffer-debloat.enabled": "false",
            "taskmanager.memory.segment-size": "16kb",
            "state.backend.type": "hashmap",
            # As Flink's defaults, where the testbed has others.
            "metrics.fetcher.update-interval": "10000",
            "web.refresh-interval": "3000",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "10",
            "restart-strategy.fixed-delay.delay": OUTAGE,
        }
        cluster.ensure(Profile(tuple(TaskManager(f"tm{i}", SLOTS, 1400.0) for i in (1, 2)), settings))
        barrier = threading.Barrier(max(restarting, 1), action=lambda: _kill_soon(cluster, kill_idle))
        with Topics(broker.connection) as topics:
            jar = cluster.rest.upload(program_jar(Path(folder), release))
            yield Lab(cluster, broker, topics, jar, Workspace(Path(folder) / "workspace"), barrier)


def _kill_soon(cluster: LocalCluster, idle: bool) -> None:
    """The TaskManager with the most tasks, or that with the fewest."""
    fullest, *_, emptiest = sorted(cluster.rest.task_managers(), key=lambda one: one.free_slots)
    threading.Timer(KILLED_AFTER_S, cluster.kill, [(emptiest if idle else fullest).id]).start()


@contextmanager
def running(lab: Lab, kind: Kind, name: str) -> Iterator["Fed"]:
    """The job, and what feeds it."""
    topic = f"{name}-events"
    lab.topics.create(topic, kind.partitions)
    arguments = [lab.broker.connection.bootstrap, topic, name, kind.parse_us, kind.count_us, kind.store_us]
    program = JarProgram(
        "KafkaJob",
        tuple(map(str, [*arguments, kind.hot, str(kind.chained).lower()])),
        {"parallelism.default": str(kind.tasks), "execution.checkpointing.interval": "10 s"},
    )
    with KafkaFeeder(lab.broker.connection, [GeneratedFeed(topic, keys=KEYS)]) as feeder:
        job = lab.rest.run(lab.jar, program)
        try:
            lab.rest.wait_until_running(job, START_S)
            yield Fed(lab, kind, job, topic, feeder)
        finally:
            lab.rest.cancel(job)


@dataclass(frozen=True)
class Fed:
    """A running job whose topic is fed."""

    lab: Lab
    kind: Kind
    job: str
    topic: str
    feeder: KafkaFeeder

    def offer(self, rate: float) -> None:
        self.feeder.offer({self.topic: rate})

    def seen_at(self, rate: float, seconds: float, settle_s: float = SETTLE_S) -> Observed:
        """What is observed at a rate, once it has settled."""
        self.offer(rate)
        time.sleep(settle_s)
        return self.observed(seconds)

    def observed(self, seconds: float) -> Observed:
        return observe_job(
            self.lab.rest, self.job, seconds, self.lab.workspace, Quiet(), self.lab.broker.connection.bootstrap
        )

    def drained(self) -> None:
        """Feed nothing until nothing is read any more."""
        self.offer(0.0)
        before = -1.0
        while (now := self._read()) != before:
            before = now
            time.sleep(SETTLE_S / 2)

    def _read(self) -> float:
        """Records that the tasks after the source have taken. Flink answers with what it fetched when it was asked before."""
        self.lab.rest.get(f"/jobs/{self.job}/metrics")
        time.sleep(FETCHED_S)
        vertices = self.lab.rest.get(f"/jobs/{self.job}")["vertices"]
        return float(sum(v["metrics"]["read-records"] for v in vertices))
