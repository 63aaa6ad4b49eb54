"""Jobs of a user that go wrong while they are observed, on a real Flink that reads a real broker.

Each observation is held to have left nothing behind: no jar, job, topic or consumer group but those of the user.
"""

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest
from confluent_kafka import Producer

from answering.tls_proxy import TlsProxy, certificate
from flink.kafka_program import kafka_program
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from flink_client.rest.waiting import wait_for
from models.capacity.observed.record import ObservedJob
from models.errors import SluiceError
from pipelines.observe import watching
from pipelines.observe.observation import observe_job
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import RELEASES, Release
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import STATE_METRICS, Profile, TaskManager
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.topics import Topics

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
RATE: Final = 200.0
PROFILE = Profile((TaskManager("tm1", 2, 900.0),))
STARTED_AGAIN: Final = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "10000",
    "restart-strategy.fixed-delay.delay": "1 s",
}
TOKEN = "a-token-of-this-test"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "LEAST_PAUSE_S", 2.0)


@dataclass(frozen=True)
class Users:
    """The cluster of a user."""

    rest: FlinkRest
    kafka: KafkaConnection
    jar: str
    workspace: Workspace

    def there(self) -> dict[str, set[str]]:
        """What is on the clusters."""
        admin = self.kafka.admin()
        with self.kafka.answers():
            groups = admin.list_consumer_groups(request_timeout=30).result(60).valid
            topics = admin.list_topics(timeout=30).topics
        jobs = self.rest.get("/jobs/overview")["jobs"]
        return {
            "jars": set(self.rest.jars()),
            "jobs": {one["jid"] for one in jobs},
            "groups": {one.group_id for one in groups},
            "topics": set(topics),
        }

    def observe(self, job: str, seconds: float, rest: FlinkRest | None = None) -> ObservedJob:
        """Observe it, and see that nothing is left."""
        before = self.there()
        seen = observe_job(rest or self.rest, job, seconds, self.workspace, Quiet(), self.kafka.bootstrap)
        assert self.there() == before
        return seen.job


@pytest.fixture(scope="module", params=["2.3", pytest.param("1.20", marks=pytest.mark.long)])
def users(
    request: pytest.FixtureRequest, broker: LocalBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Users]:
    release: Release = RELEASES[request.param]
    with LocalCluster(release=release) as cluster:
        cluster.ensure(PROFILE)
        jar = cluster.rest.upload(kafka_program(tmp_path_factory.mktemp("program"), release))
        yield Users(cluster.rest, broker.connection, jar, Workspace(tmp_path_factory.mktemp("workspace")))


@contextmanager
def running(users: Users, topic: str, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[str]:
    """The user's job, without checkpoints."""
    arguments = (users.kafka.bootstrap, topic, f"reader-of-{topic}", "0", "0", "0", "0.0", "true")
    job = users.rest.run(users.jar, JarProgram("KafkaJob", arguments, {**STARTED_AGAIN, **settings}))
    try:
        users.rest.wait_until_running(job, 240.0)
        yield job
    finally:
        users.rest.cancel(job)


class Feeding:
    """Writes records at a rate to the first partition of a topic, from a thread."""

    def __init__(self, kafka: KafkaConnection, topic: str) -> None:
        self._producer, self._topic = Producer({"bootstrap.servers": kafka.bootstrap, "log_level": 0}), topic
        self.written = 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def write(self, value: str) -> None:
        self._producer.produce(self._topic, value, partition=0)

    def _feed(self) -> None:
        began = time.monotonic()
        while not self._ends.wait(0.02):
            while self.written < RATE * (time.monotonic() - began):
                self.write(f'{{"id":{self.written},"key":"k{self.written % 50}","amount":1}}')
                self.written += 1
            self._producer.poll(0)

    def __enter__(self) -> "Feeding":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        self._producer.flush(60)


def said(seen: ObservedJob, part: str) -> str:
    found = [remark for remark in seen.remarks if part in remark]
    assert found, seen.remarks
    return found[0]


def test_a_broker_that_dies_and_comes_back(
    users: Users, broker: LocalBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Topics(users.kafka) as topics:
        topics.create("cards", 2)
        with Feeding(users.kafka, "cards") as feeding, running(users, "cards") as job:

            def dies() -> None:
                time.sleep(5)
                broker.kill()
                time.sleep(2)
                broker.start()

            outage = threading.Thread(target=dies)
            outage.start()
            try:
                seen = users.observe(job, 25.0)
            finally:
                outage.join()
            assert "no Kafka broker answers" in said(seen, "what waits is unknown")
            # Kafka's clients wait for the broker; where it takes too long to come back, the job fails, which is quoted.
            assert seen.restarts == 0 or "because of: " in said(seen, "failed and was started again")
            assert seen.lag_records is not None, "the lag is known again"
            assert "1 of its 2 partitions (cards-1)" in said(seen, "has read no record")
            assert "takes no checkpoints" in said(seen, "checkpoints")
            count = next(v for v in seen.vertices if v.name == "count")
            assert count.state_written, "RocksDB counts here"

            # Measured again, behind TLS and a token: nothing of the outage is left.
            made = certificate(tmp_path)
            monkeypatch.setenv("SSL_CERT_FILE", str(made.authority))
            monkeypatch.setenv("FLINK_TOKEN", TOKEN)
            with (
                TlsProxy(users.rest.url, made, TOKEN) as proxy,
                FlinkRest(proxy.url, token_variable="FLINK_TOKEN") as rest,
            ):
                written, began_s = feeding.written, time.monotonic()
                again = users.observe(job, 12.0, rest)
                fed = (feeding.written - written) / (time.monotonic() - began_s)
                assert set(proxy.methods) == {"GET"}
            assert not any("what waits is unknown" in remark for remark in again.remarks), again.remarks
            # What is taken and what waits are each known to within a refresh of one second in twelve, and the feeder is a
            # thread of this process, which does not always keep its pace.
            assert again.arriving_rate == pytest.approx(fed, rel=0.25)


def test_a_record_that_does_not_parse(users: Users) -> None:
    with Topics(users.kafka) as topics:
        topics.create("orders", 1)
        uncounted = dict.fromkeys((key for key in STATE_METRICS if "rocksdb" in key), "false")
        with Feeding(users.kafka, "orders") as feeding, running(users, "orders", uncounted) as job:
            well = users.observe(job, 8.0)
            assert well.restarts == 0
            assert "state.backend.rocksdb.metrics.bytes-read" in said(well, "are not counted")
            feeding.write('{"id":not a number,"key":"k1"}')
            wait_for(lambda: users.rest.failures(job) or None, 120.0, "the failure")
            known = {one.time_ms for one in users.rest.failures(job)}
            try:
                heard = said(users.observe(job, 10.0), "failed and was started again")
            except SluiceError as error:  # where it fails before anything is counted
                heard = str(error)
            times = re.search(r"was started again (\d+) time", heard)
            assert times is not None, heard
            since = sum(one.time_ms not in known for one in users.rest.failures(job))
            assert 1 <= int(times[1]) <= since
            assert "NumberFormatException" in heard
