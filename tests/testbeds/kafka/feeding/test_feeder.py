"""Feeding topics of a real broker: what is reported is what was written, at the rate that was set."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Message

from flink_client.rest.waiting import wait_for
from models.errors import InvalidInput, SluiceError
from testbeds.feeding.control import SourceReport
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.feeding.feeder import GeneratedFeed, KafkaFeeder
from testbeds.kafka.offsets import OffsetReader, OffsetReading
from testbeds.kafka.topics import Topics

RATE = 5000.0
PATIENCE_S = 400.0


@pytest.fixture
def feeder(topics: Topics, kafka: KafkaConnection) -> Iterator[KafkaFeeder]:
    topics.create("orders", 4)
    topics.create("payments", 3)
    feeds = [GeneratedFeed("orders", keys=10, exponent=1.0, value_bytes=90), GeneratedFeed("payments", keys=0)]
    with KafkaFeeder(kafka, feeds) as made:
        yield made


def _keeps_up(feeder: KafkaFeeder, topic: str) -> SourceReport:
    """A report of a feed that has written all but some milliseconds' records."""
    until = time.monotonic() + PATIENCE_S
    while (report := feeder.report(topic)).pending > 0.02 * RATE:
        assert time.monotonic() < until, report
        time.sleep(0.02)
    return report


def _stopped(feeder: KafkaFeeder, topic: str) -> int:
    """Records written in all, once the rate is 0 and nothing is on its way."""
    feeder.offer({topic: 0.0})
    until, seen = time.monotonic() + PATIENCE_S, -1
    while (now := feeder.report(topic).emitted_in_all) != seen:
        assert time.monotonic() < until
        seen = now
        time.sleep(1.0)
    return seen


def _read(kafka: KafkaConnection, topic: str) -> OffsetReading:
    return OffsetReader(kafka, [topic]).read()


def test_records_arrive_at_the_rate_that_was_set_and_at_the_next(feeder: KafkaFeeder) -> None:
    for rate in (RATE, RATE / 2):
        feeder.offer({"orders": rate})
        begin = _keeps_up(feeder, "orders")
        while (last := _keeps_up(feeder, "orders")).seconds < begin.seconds + 8.0:
            time.sleep(0.1)
        # By the feeder's own clock, since readings of offsets come late on a busy machine; what waits at either end is
        # less than 0.04 s of 8 s.
        assert (last.emitted - begin.emitted) / (last.seconds - begin.seconds) == pytest.approx(rate, rel=0.01)


def test_what_is_reported_is_what_was_written(
    feeder: KafkaFeeder, kafka: KafkaConnection, records: Callable[[str], list[Message]]
) -> None:
    feeder.offer({"orders": RATE, "payments": 300.0})
    wait_for(lambda: feeder.report("orders").emitted > 2 * RATE or None, PATIENCE_S, "records of two seconds")
    reported = {topic: _stopped(feeder, topic) for topic in ("orders", "payments")}
    assert reported == {topic: sum(one.end for one in _read(kafka, topic).partitions) for topic in reported}
    _check_orders(records("orders"))
    ends = sorted(one.end for one in _read(kafka, "payments").partitions)
    assert ends[-1] - ends[0] <= 1, "without keys, partitions get records in turn"
    assert all(record.key() is None for record in records("payments"))


def _check_orders(found: list[Message]) -> None:
    values = [json.loads(record.value() or b"") for record in found]
    assert sorted(value["id"] for value in values) == list(range(len(found)))
    assert {len(record.value() or b"") for record in found} == {90}
    assert [(record.key() or b"").decode() for record in found] == [value["key"] for value in values]
    assert [record.timestamp()[1] for record in found] == [value["at"] for value in values]
    keys = Counter(value["key"] for value in values)
    assert set(keys) <= {f"k{i}" for i in range(10)}
    # 1 / (1 + 1/2 + ... + 1/10) = 0.3414 of them; four standard deviations.
    assert keys["k0"] / len(found) == pytest.approx(0.3414, abs=4 * (0.3414 * 0.6586 / len(found)) ** 0.5)
    assert len({(record.key(), record.partition()) for record in found}) == len(keys), "a key has one partition"


@pytest.mark.slow
def test_records_due_while_the_broker_is_away_are_written_when_it_is_back() -> None:
    with LocalBroker() as broker:
        broker.start()
        with Topics(broker.connection) as topics:
            topics.create("orders", 1)
            with KafkaFeeder(broker.connection, [GeneratedFeed("orders")]) as feeder:
                feeder.offer({"orders": RATE})
                before = _keeps_up(feeder, "orders").emitted
                broker.kill()
                until = time.monotonic() + PATIENCE_S
                while feeder.report("orders").pending < 2 * RATE:
                    assert time.monotonic() < until
                    time.sleep(0.1)
                broker.start()
                assert _keeps_up(feeder, "orders").emitted > before + 2 * RATE
                written = _stopped(feeder, "orders")
                assert _read(broker.connection, "orders").partitions[0].end == written


def test_a_feeder_that_was_killed_is_an_error(feeder: KafkaFeeder) -> None:
    feeder._process.kill()
    feeder._process.wait()
    with pytest.raises(SluiceError, match="the Kafka feeder ended with code -9"):
        feeder.offer({"orders": 1.0})


def test_a_topic_or_feed_that_is_not_there_is_named(
    topics: Topics, feeder: KafkaFeeder, kafka: KafkaConnection
) -> None:
    with pytest.raises(InvalidInput, match=r"there is no topic 'refunds' at .*; it has orders, payments"):
        KafkaFeeder(kafka, [GeneratedFeed("refunds")])
    with pytest.raises(InvalidInput, match="there is no feed 'refunds'; there are orders, payments"):
        feeder.offer({"refunds": 1.0})
    with pytest.raises(InvalidInput, match="different names"):
        KafkaFeeder(kafka, [GeneratedFeed("orders"), GeneratedFeed("orders")])
    with pytest.raises(InvalidInput, match="at most 10,000,000 keys"):
        GeneratedFeed("orders", keys=-1)
