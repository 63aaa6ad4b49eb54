"""Topics of a broker, and what they hold."""

import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Message, TopicPartition

from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.topics import Topics


@pytest.fixture
def kafka(broker: LocalBroker) -> KafkaConnection:
    return broker.connection


@pytest.fixture
def topics(kafka: KafkaConnection) -> Iterator[Topics]:
    with Topics(kafka) as made:
        yield made


@pytest.fixture
def records(kafka: KafkaConnection) -> Callable[[str], list[Message]]:
    """All records that a topic holds at the time of the call."""

    def read(topic: str) -> list[Message]:
        found: list[Message] = []
        until = time.monotonic() + 120
        consumer = kafka.consumer()
        try:
            places = [TopicPartition(topic, n, 0) for n in kafka.partitions(consumer.list_topics, topic)]
            ends = {place.partition: consumer.get_watermark_offsets(place, timeout=60)[1] for place in places}
            consumer.assign(places)
            while len(found) < sum(ends.values()):
                assert time.monotonic() < until, f"{len(found)} of {ends}"
                found += consumer.consume(1000, timeout=1)
        finally:
            consumer.close()
        return found

    return read
