"""Offsets on a real broker, and the lag of readings that can be checked by hand."""

import pytest
from confluent_kafka import Producer, TopicPartition

from models.errors import InvalidInput
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.offsets import OffsetReader, OffsetReading, PartitionOffsets
from testbeds.kafka.topics import Topics


def _reading(*offsets: tuple[int, int, int | None]) -> OffsetReading:
    return OffsetReading(0.0, tuple(PartitionOffsets("t", i, *one) for i, one in enumerate(offsets)))


def test_the_lag_is_what_the_group_has_not_consumed() -> None:
    assert _reading((0, 1600, 1100), (0, 900, 700)).lag == 700
    assert _reading((0, 10, None)).lag is None, "it has committed nothing"


def test_an_empty_partition_has_no_lag_and_dropped_records_do_not_wait() -> None:
    assert _reading((0, 0, None), (0, 10, 4)).lag == 6
    assert _reading((80, 100, 20)).lag == 20


def test_offsets_of_a_real_group(topics: Topics, kafka: KafkaConnection) -> None:
    topics.create("orders", 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    _produce(producer, {0: 30, 1: 12})
    consumer = kafka.consumer("the-job")
    consumer.commit(offsets=[TopicPartition("orders", 0, 10), TopicPartition("orders", 1, 12)], asynchronous=False)
    reader = OffsetReader(kafka, ["orders"], "the-job")
    before = reader.read()
    assert [(one.first, one.end, one.committed, one.lag) for one in before.partitions] == [
        (0, 30, 10, 20),
        (0, 12, 12, 0),
    ]
    _produce(producer, {0: 100, 1: 50})
    consumer.commit(offsets=[TopicPartition("orders", 0, 70)], asynchronous=False)
    consumer.close()
    after = reader.read()
    assert (before.lag, after.lag) == (20, 110)
    assert after.at_s > before.at_s


def test_a_group_that_is_not_there_is_named_with_those_that_are(topics: Topics, kafka: KafkaConnection) -> None:
    topics.create("orders", 1)
    consumer = kafka.consumer("the-job")
    consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    consumer.close()
    with pytest.raises(
        InvalidInput, match=r"there is no consumer group 'a-job' at .*; it has the-job\. A job on Flink"
    ):
        OffsetReader(kafka, ["orders"], "a-job")


def _produce(producer: Producer, records: dict[int, int]) -> None:
    for partition, count in records.items():
        for _ in range(count):
            producer.produce("orders", b"x", partition=partition)
    assert producer.flush(60) == 0
