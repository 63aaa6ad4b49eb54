"""Where the logs of a job's topics end, of a broker that answers as librdkafka's client does."""

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from models.errors import InvalidInput, SluiceError
from pipelines.observe.log_ends import BrokerLogEnds
from testbeds.kafka.connection import KafkaConnection


class Topics(dict[str, int]):
    """A broker with so many partitions of each topic; partition n ends at 100 + n. It is its own client."""

    def list_topics(self, timeout: float) -> SimpleNamespace:
        known = {name: SimpleNamespace(partitions=dict.fromkeys(range(count))) for name, count in self.items()}
        return SimpleNamespace(topics=known)

    def list_offsets(
        self, asked: Mapping[TopicPartition, object], request_timeout: float
    ) -> dict[TopicPartition, Future[SimpleNamespace]]:
        answers: dict[TopicPartition, Future[SimpleNamespace]] = {}
        for place in asked:
            answers[place] = Future()
            if place.partition < self.get(place.topic, 0):
                answers[place].set_result(SimpleNamespace(offset=100 + place.partition))
            else:
                answers[place].set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        return answers


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    made = Topics()
    monkeypatch.setattr(KafkaConnection, "admin", lambda self: made)
    return made


def test_a_topic_is_found_by_the_name_that_flink_reports(topics: Topics) -> None:
    """In the names of metrics it writes _ for a dot."""
    topics |= {"orders.v1.eu": 2, "clicks_v1": 1, "other": 1}
    ends = BrokerLogEnds("b:9092")([("orders_v1_eu", 1), ("clicks_v1", 0)])
    assert ends[("orders_v1_eu", 1)] == 101.0
    assert ends[("clicks_v1", 0)] == 100.0


def test_topics_that_flink_reports_by_the_same_name_are_refused(topics: Topics) -> None:
    topics |= {"orders.v1": 2, "orders_v1": 2}
    with pytest.raises(InvalidInput, match=r"'orders_v1' of Flink's metrics may be orders\.v1 or orders_v1 at b:9092"):
        BrokerLogEnds("b:9092")([("orders_v1", 0)])


def test_a_topic_that_is_not_there_is_named(topics: Topics) -> None:
    topics |= {"clicks": 1}
    with pytest.raises(InvalidInput, match="there is no topic 'orders' at b:9092; it has clicks"):
        BrokerLogEnds("b:9092")([("orders", 0)])


def test_partitions_that_are_added_meanwhile_are_read(topics: Topics) -> None:
    topics |= {"orders": 8}
    ends = BrokerLogEnds("b:9092")
    assert len(ends([("orders", n) for n in range(8)])) == 8
    topics["orders"] = 12
    found = ends([("orders", n) for n in range(12)])
    assert found[("orders", 11)] == 111.0


def test_a_partition_that_the_broker_does_not_have_is_named(topics: Topics) -> None:
    topics |= {"orders": 8}
    with pytest.raises(SluiceError, match="Flink reads partition 8 of the topic 'orders', which b:9092 does not have"):
        BrokerLogEnds("b:9092")([("orders", 8), ("orders", 1)])
