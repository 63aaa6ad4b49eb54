"""A broker for all tests of this folder."""

from collections.abc import Iterator

import pytest

from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.topics import Topics


@pytest.fixture(scope="session")
def broker() -> Iterator[LocalBroker]:
    with LocalBroker() as made:
        made.start()
        yield made


@pytest.fixture
def kafka(broker: LocalBroker) -> KafkaConnection:
    return broker.connection


@pytest.fixture
def topics(kafka: KafkaConnection) -> Iterator[Topics]:
    with Topics(kafka) as made:
        yield made
