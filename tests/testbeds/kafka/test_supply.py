"""Topics of one run on a real broker, and what writes to them."""

import json
import time
from pathlib import Path

import pytest

from models.errors import InvalidInput
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.feeding.feeder import GeneratedFeed
from testbeds.kafka.feeding.replay import TopicRecording
from testbeds.kafka.offsets import OffsetReader, OffsetReading
from testbeds.kafka.supply import FedTopic, FedTopics, KafkaFeed, KafkaSupply
from testbeds.kafka.topics import Topics

SECONDS = 5.0


def made_up(name: str, share: float) -> FedTopic:
    return FedTopic(name, 2, GeneratedFeed(name), share)


def arrived_per_s(before: OffsetReading, after: OffsetReading) -> float:
    ends = [sum(one.end for one in reading.partitions) for reading in (before, after)]
    return (ends[1] - ends[0]) / (after.at_s - before.at_s)


@pytest.mark.slow
def test_topics_are_fed_by_their_weights_and_removed_again(kafka: KafkaConnection, topics: Topics) -> None:
    with FedTopics(kafka, [made_up("fed-a", 3.0), made_up("fed-b", 1.0)]) as fed:
        assert fed.shares == {"fed-a": 0.75, "fed-b": 0.25}
        fed.offer(4000.0)
        readers = {name: OffsetReader(kafka, [name]) for name in fed.shares}
        before = {name: reader.read() for name, reader in readers.items()}
        time.sleep(SECONDS)
        rates = {name: arrived_per_s(before[name], reader.read()) for name, reader in readers.items()}
        # Acknowledged in batches, up to some tenths of a second apart.
        assert rates == {"fed-a": pytest.approx(3000.0, rel=0.1), "fed-b": pytest.approx(1000.0, rel=0.1)}
        assert {"fed-a", "fed-b"} <= topics.names()
    assert not {"fed-a", "fed-b"} & topics.names()


def test_a_topic_of_somebody_else_is_left_alone(kafka: KafkaConnection, topics: Topics) -> None:
    topics.create("theirs", 1)
    with pytest.raises(InvalidInput, match="there is a topic 'theirs'"):
        FedTopics(kafka, [made_up("ours", 1.0), made_up("theirs", 1.0)])
    assert "theirs" in topics.names() and "ours" not in topics.names()


def test_recorded_and_made_up_topics_do_not_mix(kafka: KafkaConnection, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"at": 1}))
    recorded = FedTopic("recorded", 1, TopicRecording("recorded", tmp_path / "a.jsonl", "at"))
    with pytest.raises(InvalidInput, match="'recorded' is recorded and 'b' is not; record it, too"):
        FedTopics(kafka, [recorded, made_up("b", 1.0)])


def test_running_brokers_are_used_and_left_running(kafka: KafkaConnection, topics: Topics) -> None:
    with KafkaSupply(KafkaFeed((), kafka.bootstrap)) as supply:
        assert supply.connection == kafka
    assert topics.names() is not None


@pytest.mark.slow
def test_after_a_broker_was_killed_the_next_run_gets_new_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbeds.kafka.topics.ANSWER_S", 1.0)
    said: list[str] = []
    with KafkaSupply(KafkaFeed((made_up("clicks", 1.0),)), said.append) as supply:
        with supply.feed() as fed:
            fed.offer(100.0)
            assert supply._broker is not None
            supply._broker.kill()
        assert len(said) == 1 and "topics may be left" in said[0] and "no Kafka broker answers" in said[0]
        with supply.feed() as fed:
            fed.offer(100.0)
            assert OffsetReader(supply.connection, ["clicks"]).read().partitions
    assert len(said) == 1
