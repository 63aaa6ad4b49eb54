"""Whether state in ForSt outlives rescales in place, by its contents: Flink's own example of a state machine keeps where each
address is, and lets out an alert for each event that is not possible there.

In the machine's first state neither `b` nor `e` is possible, so an address whose state was lost lets out an alert.
"""

import struct
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from flink_client.rest.waiting import wait_for
from models.errors import InvalidInput
from testbeds.flink.local.distribution import FLINK_2_3
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.offsets import OffsetReader
from testbeds.kafka.topics import Topics
from testbeds.local.maven import jars
from testbeds.local.user_jar import user_jar

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
TOPIC, GROUP = "events", "stateMachineExample"
EXAMPLE = "org.apache.flink.streaming.examples.statemachine.StateMachineExample"
SETTINGS = {"execution.checkpointing.interval": "1 s", "parallelism.default": "1"}
ADDRESSES: Final = range(10_000)
READ, ALERTS = "Flat_Map.numRecordsIn", "Flat_Map.numRecordsOut"


@dataclass
class Machine:
    """The example, which reads what is sent to it."""

    rest: FlinkRest
    kafka: KafkaConnection
    job: str
    vertex: str
    """That keeps the state."""
    tasks: int = 1
    sent: int = 0
    """Since it was last rescaled."""

    def send(self, event: str, addresses: Iterable[int]) -> None:
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap, "log_level": 0})
        for address in addresses:
            producer.produce(TOPIC, struct.pack("<ii", address, "abcdefg".index(event)))
            producer.poll(0)
            self.sent += 1
        assert producer.flush(60) == 0

    def alerts(self) -> int:
        """Once all that was sent is read, and in a checkpoint."""

        def read() -> dict[str, float] | None:
            tasks = self.rest.vertex_metrics(self.job, self.vertex, (READ, ALERTS), self.tasks)
            total = {name: sum(task.get(name, 0.0) for task in tasks) for name in (READ, ALERTS)}
            return total if total[READ] >= self.sent and self.left() == 0 else None

        found = wait_for(read, 60.0, f"{self.sent} events to be read")
        assert found[READ] == self.sent
        return int(found[ALERTS])

    def left(self) -> int | None:
        """Events that no checkpoint holds yet, since the group commits with it; None before the first that holds one."""
        try:
            return OffsetReader(self.kafka, [TOPIC], GROUP).read().lag
        except InvalidInput:  # there is no group yet
            return None

    def rescale(self, tasks: int) -> None:
        self.rest.require(self.job, {self.vertex: tasks})
        self.rest.wait_until_running(self.job, 60.0, {self.vertex: tasks})
        self.tasks, self.sent = tasks, 0


@pytest.fixture
def machine(root: Path, tmp_path: Path, kafka: KafkaConnection, topics: Topics) -> Iterator[Machine]:
    parts = jars(root / "benchmarks" / "running" / "unmodified" / "examples-2.3.pom.xml", "this test").glob("*.jar")
    jar = user_jar(sorted(part for part in parts if not part.stem.endswith("Windowing")), tmp_path / "examples.jar")
    topics.create(TOPIC, 1)
    with LocalCluster(release=FLINK_2_3) as cluster:
        cluster.ensure(Profile((TaskManager("tm1", 3, 1024.0),), {"state.backend.type": "forst"}))
        arguments = ("--kafka-topic", TOPIC, "--brokers", kafka.bootstrap)
        job = cluster.rest.run(cluster.rest.upload(jar), JarProgram(EXAMPLE, arguments, SETTINGS))
        vertices = cluster.rest.wait_until_running(job, 180.0).vertices
        (vertex,) = (one.id for one in vertices if "Flat Map" in one.name)
        made = Machine(cluster.rest, kafka, job, vertex)
        _until_it_reads(made)
        yield made
        cluster.rest.cancel(job)


def _until_it_reads(machine: Machine) -> None:
    """It reads what arrives from some moment on; what is sent before is lost, so these events are not counted."""
    for address in range(len(ADDRESSES), 2 * len(ADDRESSES)):
        machine.send("a", [address])
        time.sleep(0.5)
        if machine.left() is not None:
            break
    wait_for(lambda: machine.left() == 0 or None, 60.0, "a checkpoint of all that is read")


def test_no_address_loses_its_state_in_forst(machine: Machine) -> None:
    backend = machine.rest.get(f"/jobs/{machine.job}/checkpoints/config")["state_backend"]
    assert "ForSt" in backend
    for tasks, event in ((2, "a"), (1, "b"), (2, "e")):
        machine.rescale(tasks)
        machine.send(event, ADDRESSES)
        assert machine.alerts() == 0
    machine.send("b", ADDRESSES[:100])  # not possible after `e`
    assert machine.alerts() == 100
