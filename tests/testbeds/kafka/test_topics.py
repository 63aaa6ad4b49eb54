"""Topics and groups on a real broker: what was created is removed, and nothing else."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition

from models.errors import InvalidInput, SluiceError
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.topics import Topics

OWNER = """
import sys, time
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.topics import Topics
from testbeds.local.termination import closing_on_sigterm
with closing_on_sigterm(), Topics(KafkaConnection(sys.argv[1])) as topics:
    topics.create("owned", 3)
    print("created", flush=True)
    time.sleep(600)
"""


def _commit(kafka: KafkaConnection, group: str, topic: str) -> None:
    """Leave a consumer group behind, as a job does."""
    consumer = kafka.consumer(group)
    consumer.commit(offsets=[TopicPartition(topic, 0, 1)], asynchronous=False)
    consumer.close()


def test_topics_and_groups_are_the_same_before_and_after(topics: Topics, kafka: KafkaConnection) -> None:
    topics.create("kept", 1)
    _commit(kafka, "others", "kept")
    before = topics.names(), topics.groups()
    assert before == ({"kept"}, {"others"})
    with Topics(kafka) as mine:
        mine.create("orders", 4)
        mine.create("payments", 2)
        _commit(kafka, "the-job", "orders")
        assert mine.names() == {"kept", "orders", "payments"} and mine.groups() == {"others", "the-job"}
        assert (mine.partitions("orders"), mine.partitions("payments")) == (4, 2)
        mine.delete("payments")
        assert mine.names() == {"kept", "orders"}
    assert (topics.names(), topics.groups()) == before


def test_a_group_that_reads_another_topic_too_is_left_alone(topics: Topics, kafka: KafkaConnection) -> None:
    topics.create("kept", 1)
    with Topics(kafka) as mine:
        mine.create("orders", 1)
        for topic in ("orders", "kept"):
            _commit(kafka, "both", topic)
    assert topics.groups() == {"both"}


def test_what_sigterm_ends_leaves_nothing(topics: Topics, kafka: KafkaConnection, root: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, kafka.bootstrap], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert owner.stdout is not None and owner.stdout.readline() == "created\n"
    assert topics.names() == {"owned"}
    owner.send_signal(signal.SIGTERM)
    owner.communicate(timeout=120)
    assert owner.returncode == 128 + signal.SIGTERM
    assert topics.names() == set()


def test_what_a_killed_process_left_is_removed_by_the_next_one(
    topics: Topics, kafka: KafkaConnection, root: Path
) -> None:
    topics.create("kept", 1)
    _commit(kafka, "others", "kept")
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, kafka.bootstrap], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert owner.stdout is not None and owner.stdout.readline() == "created\n"
    _commit(kafka, "the-job", "owned")
    with Topics(kafka) as another:  # its process lives
        assert another.names() == {"kept", "owned"}
    owner.kill()
    owner.communicate(timeout=120)
    said: list[str] = []
    with Topics(kafka, said.append) as another:
        assert (another.names(), another.groups()) == ({"kept"}, {"others"})
    assert said == [f"removed topics that a killed measurement left at {kafka.bootstrap}: owned"]


def test_a_topic_of_the_same_name_that_somebody_else_created_is_left_alone(
    topics: Topics, kafka: KafkaConnection, root: Path
) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, kafka.bootstrap], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert owner.stdout is not None and owner.stdout.readline() == "created\n"
    owner.kill()
    owner.communicate(timeout=120)
    topics.delete("owned")
    topics.create("owned", 1)
    with Topics(kafka) as another:
        assert another.names() == {"owned"}


def test_a_topic_that_exists_is_neither_created_nor_removed(topics: Topics, kafka: KafkaConnection) -> None:
    topics.create("kept", 1)
    with Topics(kafka) as mine, pytest.raises(InvalidInput, match=r"there is a topic 'kept' at .* already"):
        mine.create("kept", 1)
    assert topics.names() == {"kept"}


@pytest.mark.parametrize(
    ("name", "partitions", "settings", "said"),
    [
        ("no/slash", 1, {}, "'no/slash' cannot be created"),
        ("orders", 0, {}, "1 partition or more, but 'orders' was given 0"),
        ("orders", 1, {"retention.ms": "long"}, "retention.ms"),
    ],
)
def test_what_kafka_does_not_allow_is_refused(
    topics: Topics, name: str, partitions: int, settings: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        topics.create(name, partitions, settings=settings)
    assert topics.names() == set()


def test_a_topic_that_is_not_there_is_named_with_those_that_are(topics: Topics) -> None:
    topics.create("orders", 1)
    with pytest.raises(InvalidInput, match=r"there is no topic 'order' at .*; it has orders"):
        topics.partitions("order")


def test_a_topic_keeps_no_more_than_it_was_given(topics: Topics, kafka: KafkaConnection) -> None:
    topics.create("orders", 1, keep_mb=8)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for _ in range(24 * 16):
        producer.produce("orders", bytes(1 << 16), partition=0)
    producer.flush()
    first = _until_dropped(kafka)
    kept_mb = (24 * 16 - first) / 16
    assert 7 <= kept_mb <= 10


def test_records_of_long_ago_are_kept(topics: Topics, kafka: KafkaConnection) -> None:
    topics.create("orders", 1)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce("orders", b"old", partition=0, timestamp=1)
    assert producer.flush(120) == 0
    time.sleep(6.0)  # the broker looks for what it may drop every 2 s
    consumer = kafka.consumer()
    assert consumer.get_watermark_offsets(TopicPartition("orders", 0), timeout=60) == (0, 1)
    consumer.close()


def _until_dropped(kafka: KafkaConnection) -> int:
    """The first offset that is left once the oldest records were dropped."""
    consumer, place, until = kafka.consumer(), TopicPartition("orders", 0), time.monotonic() + 60
    try:
        while True:
            first, end = consumer.get_watermark_offsets(place, timeout=10)
            if (end - first) / 16 <= 10:
                return int(first)
            assert time.monotonic() < until, f"offsets {first} to {end} are left"
            time.sleep(0.2)
    finally:
        consumer.close()


def test_an_address_where_no_broker_is_is_an_error_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbeds.kafka.topics.ANSWER_S", 1.0)  # a refused connection is tried again until then
    with pytest.raises(SluiceError, match=r"no Kafka broker answers at 127\.0\.0\.1:9; check the address"):
        Topics(KafkaConnection("127.0.0.1:9"))
    with pytest.raises(InvalidInput, match="HOST:PORT, but got 'broker'"):
        KafkaConnection("127.0.0.1:9,broker")
    with pytest.raises(InvalidInput, match=r"a setting of the Kafka connection is wrong: .*securty"):
        KafkaConnection("127.0.0.1:9", {"securty.protocol": "SSL"}).admin()
