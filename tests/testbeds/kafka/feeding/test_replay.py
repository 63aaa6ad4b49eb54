"""Recorded topics, replayed in step into a real broker."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Message, Producer

from models.errors import InvalidInput
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.feeding.feeder import KafkaFeeder
from testbeds.kafka.feeding.replay import ReplayedFeed, ReplayTime, TopicRecording, replayed
from testbeds.kafka.recording.sampling import TopicRange
from testbeds.kafka.recording.topic_file import record
from testbeds.kafka.topics import Topics

BEGAN_MS = 1_700_000_000_000
PATIENCE_S = 300.0


@pytest.fixture(autouse=True)
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merged files go to the test's folder; Kafka itself stays where it is."""
    monkeypatch.setattr("testbeds.kafka.feeding.replay.cache_folder", lambda: tmp_path / "cache")


def _lines(path: Path, values: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def _two_topics(folder: Path) -> list[TopicRecording]:
    """Views each 10 ms, and clicks on every third of them 45 ms later, some of them 20 ms late."""
    views = [{"view": i, "at": BEGAN_MS + 10 * i} for i in range(60)]
    clicks = [{"click": i, "at": {"nested": 1}, "when": _text(BEGAN_MS + 10 * i + 45)} for i in range(0, 54, 3)]
    clicks[4], clicks[5] = clicks[5], clicks[4]
    return [
        TopicRecording("views", _lines(folder / "views.jsonl", views), "at", "view"),
        TopicRecording("clicks", _lines(folder / "clicks.jsonl", clicks), "when"),
    ]


def _text(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _written(
    kafka: KafkaConnection,
    topics: Topics,
    feed: ReplayedFeed,
    records: Callable[[str], list[Message]],
    at_least: int,
    partitions: int = 2,
) -> dict[str, list[Message]]:
    """What two topics hold after so many records, by Kafka's timestamps."""
    for topic in feed.topics:
        topics.create(topic, partitions)
    with KafkaFeeder(kafka, [feed]) as feeder:
        feeder.offer({feed.name: 1000.0})
        until = time.monotonic() + PATIENCE_S
        while feeder.report(feed.name).emitted < at_least:
            assert time.monotonic() < until
            time.sleep(0.05)
        feeder.offer({feed.name: 0.0})
    return {topic: sorted(records(topic), key=lambda one: one.timestamp()[1]) for topic in feed.topics}


def _value(record: Message) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(record.value() or b"")
    return found


def test_what_was_close_in_time_stays_close_and_rounds_follow_each_other(
    tmp_path: Path, topics: Topics, kafka: KafkaConnection, records: Callable[[str], list[Message]]
) -> None:
    feed = replayed("both", _two_topics(tmp_path), ReplayTime.RECORDED)
    assert (feed.records, feed.period_ms) == (78, round(590 * 78 / 77))
    found = _written(kafka, topics, feed, records, at_least=3 * feed.records)
    views, clicks = found["views"], found["clicks"]
    began = views[0].timestamp()[1]
    for i, view in enumerate(views):
        rounds, number = divmod(i, 60)
        assert _value(view) == {"view": number, "at": began + rounds * feed.period_ms + 10 * number}
        assert view.timestamp()[1] == _value(view)["at"] and view.key() == str(number).encode()
    viewed = {(i // 60, _value(view)["view"]): _value(view)["at"] for i, view in enumerate(views)}
    for i, click in enumerate(clicks):
        value = _value(click)
        assert value["when"] == _text(viewed[i // 18, value["click"]] + 45), "each click is 45 ms after its view"
        assert value["at"] == {"nested": 1}


def test_with_the_time_of_writing_shares_and_lateness_are_as_recorded(
    tmp_path: Path, topics: Topics, kafka: KafkaConnection, records: Callable[[str], list[Message]]
) -> None:
    before = time.time() * 1000
    feed = replayed("both", _two_topics(tmp_path))
    found = _written(kafka, topics, feed, records, at_least=10 * feed.records)
    after = time.time() * 1000
    assert len(found["clicks"]) / len(found["views"]) == pytest.approx(18 / 60, rel=0.05)
    stamps = [one.timestamp()[1] for topic in found.values() for one in topic]
    assert before - 1000 <= min(stamps) and max(stamps) <= after
    offsets = sorted(found["clicks"], key=lambda one: (one.partition(), one.offset()))
    late = [click for click in offsets if _value(click)["click"] == 12]
    on_time = [click for click in offsets if _value(click)["click"] == 15]
    # Click 12 was recorded behind click 15, and 30 ms older; both are written at about the same time.
    assert late and all(
        min(abs(other.timestamp()[1] - 30 - one.timestamp()[1]) for other in on_time) <= 20 for one in late
    )


def test_a_topic_that_was_recorded_goes_to_the_partitions_that_it_had(
    tmp_path: Path, topics: Topics, kafka: KafkaConnection, records: Callable[[str], list[Message]]
) -> None:
    topics.create("orders", 3)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for i in range(60):
        producer.produce("orders", key=b"k", value=b"\xff%d" % i, partition=i % 3, timestamp=BEGAN_MS + i)
    assert producer.flush(120) == 0
    file = record(kafka, "orders", tmp_path / "orders.parquet", TopicRange(1000)).file
    feed = replayed("again", [TopicRecording("replayed", file)], ReplayTime.RECORDED)
    assert feed.partitions == {"replayed": 3}
    found = _written(kafka, topics, feed, records, at_least=60, partitions=3)["replayed"]
    first = found[0].timestamp()[1]
    assert [(one.key(), one.value(), one.partition(), one.timestamp()[1] - first) for one in found[:60]] == [
        (b"k", b"\xff%d" % i, i % 3, i) for i in range(60)
    ]
    assert feed.line({"replayed": 2}).endswith("replayed 2 by-key")
    elsewhere = replace(feed, file=Path("/a folder/orders"))
    assert elsewhere.line({"replayed": 2}).split(" ")[1:3] == ["replay", "file:///a%20folder/orders"]


def test_rows_of_parquet_become_json(tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2], "at": pa.array([BEGAN_MS, BEGAN_MS + 500], pa.timestamp("ms"))})
    pq.write_table(table, tmp_path / "rows.parquet")
    feed = replayed("rows", [TopicRecording("rows", tmp_path / "rows.parquet", time="at", key="id")])
    assert (feed.records, feed.period_ms, feed.partitions) == (2, 1000, {"rows": 0})
    assert b'"at": "2023-11-14 22:13:20.500"' in feed.file.read_bytes()


@pytest.mark.parametrize(
    ("content", "time_field", "said"),
    [
        ('{"a": 1}', None, "was not written by 'sluice record': name the field with the time"),
        ('{"a": 1}', "at", "a value has no field 'at'"),
        ('{"at": "soon"}', "at", "the field 'at' must be a time, but is 'soon'"),
        ('{"at": null}', "at", "the field 'at' must be a time, but is null"),
        ('{"at": [1]}', "at", "the field 'at' must be a time"),
        ("at", "at", "a value has no field 'at'"),
        ("\n", "at", "has no records to replay"),
    ],
)
def test_what_cannot_be_replayed_is_refused(tmp_path: Path, content: str, time_field: str | None, said: str) -> None:
    file = tmp_path / "wrong.jsonl"
    file.write_text(content)
    with pytest.raises(InvalidInput, match=said):
        replayed("wrong", [TopicRecording("t", file, time_field)])
    with pytest.raises(InvalidInput, match="does not exist"):
        replayed("wrong", [TopicRecording("t", tmp_path / "none.jsonl", "at")])


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "wrong.parquet"
    file.write_text("no Parquet")
    with pytest.raises(InvalidInput, match=r"wrong\.parquet must be a Parquet file, but cannot be read"):
        replayed("wrong", [TopicRecording("t", file, "at")])
