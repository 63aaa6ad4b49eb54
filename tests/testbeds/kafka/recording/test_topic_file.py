"""`sluice record` from a real broker, and the files that it writes."""

import json
import threading
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer

from models.errors import InvalidInput, SluiceError
from pipelines.cli import run
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.feeding.feeder import GeneratedFeed, KafkaFeeder
from testbeds.kafka.recording.sampling import TopicRange
from testbeds.kafka.recording.topic_file import ValueColumns, record
from testbeds.kafka.topics import Topics

ALL = TopicRange(1_000_000)


def _produce(kafka: KafkaConnection, topic: str, records: list[tuple[int, bytes | None, bytes | None, int]]) -> None:
    """Records by partition, key, value and timestamp."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for partition, key, value, time_ms in records:
        producer.produce(topic, key=key, value=value, partition=partition, timestamp=time_ms)
    assert producer.flush(120) == 0


def _orders(count: int) -> list[tuple[int, bytes | None, bytes | None, int]]:
    """Two of three in partition 0; a millisecond apart."""
    return [
        (min(i % 3, 1), f"k{i % 7}".encode(), json.dumps({"order": i, "key": f"v{i}"}).encode(), 1_700_000_000_000 + i)
        for i in range(count)
    ]


def _sorted(file: Path) -> list[dict[str, Any]]:
    return pq.read_table(file).sort_by("timestamp").to_pylist()


def test_what_is_in_the_topic_is_in_the_file(topics: Topics, kafka: KafkaConnection, tmp_path: Path) -> None:
    topics.create("orders", 3)
    _produce(kafka, "orders", _orders(30))
    groups = topics.groups()
    found = record(kafka, "orders", tmp_path / "orders.parquet", ALL)
    rows = _sorted(found.file)
    assert found.records == len(rows) == 30 and found.partitions == {0: 10, 1: 20}
    assert found.remarks == ("partition 2 of orders held no records",)
    assert found.columns == ("key", "value", "partition", "offset", "timestamp", "order", "value_key")
    assert rows[4] == {
        "key": "k4",
        "value": '{"order": 4, "key": "v4"}',
        "partition": 1,
        "offset": 2,
        "timestamp": datetime.fromtimestamp(1_700_000_000.004, UTC),
        "order": 4,
        "value_key": "v4",
    }
    assert topics.groups() == groups
    assert [path.name for path in tmp_path.iterdir()] == ["orders.parquet"]


def test_the_last_records_are_taken_by_time_so_that_busy_partitions_give_more(
    topics: Topics, kafka: KafkaConnection, tmp_path: Path
) -> None:
    topics.create("orders", 2)
    _produce(kafka, "orders", _orders(3000))
    found = record(kafka, "orders", tmp_path / "orders.parquet", TopicRange(300))
    assert found.records == 300 and found.partitions == {0: 100, 1: 200}
    assert {row["order"] for row in _sorted(found.file)} == set(range(2700, 3000))


def test_bytes_stay_bytes_and_values_that_are_no_json_stay_as_they_are(
    topics: Topics, kafka: KafkaConnection, tmp_path: Path
) -> None:
    topics.create("mixed", 1)
    _produce(kafka, "mixed", [(0, b"\xff", b'{"a": 1}', 1), (0, None, b"plain", 2), (0, None, None, 3)])
    found = record(kafka, "mixed", tmp_path / "mixed.parquet", ALL)
    table = pq.read_table(found.file)
    assert table.schema.field("key").type == pa.binary() and table.schema.field("value").type == pa.string()
    assert table.column("value").to_pylist() == ['{"a": 1}', "plain", None]
    assert "without columns of their own: every value must be a JSON object, but one is 'plain'" in found.remarks[0]
    with pytest.raises(InvalidInput, match=r"the values of the topic do not parse: .*'plain'"):
        record(kafka, "mixed", tmp_path / "other.parquet", ALL, ValueColumns.JSON)
    assert not (tmp_path / "other.parquet").exists()


def test_values_of_a_schema_registry_are_recorded_with_a_remark(
    topics: Topics, kafka: KafkaConnection, tmp_path: Path
) -> None:
    topics.create("avro", 1)
    _produce(kafka, "avro", [(0, b"k", b"\x00\x00\x00\x00\x07\x02", 1)])
    found = record(kafka, "avro", tmp_path / "avro.parquet", ALL)
    assert found.columns == ("key", "value", "partition", "offset", "timestamp")
    assert "schema registry's serializer" in found.remarks[0]


def test_a_topic_without_records_is_an_error_that_says_what_to_do(
    topics: Topics, kafka: KafkaConnection, tmp_path: Path
) -> None:
    topics.create("empty", 3)
    with pytest.raises(InvalidInput, match=r"'empty' holds no records in any of its 3 partitions; .*--for 1m"):
        record(kafka, "empty", tmp_path / "empty.parquet", ALL)
    with pytest.raises(InvalidInput, match=r"no record arrived in the topic 'empty' within 1 s"):
        record(kafka, "empty", tmp_path / "empty.parquet", TopicRange(10, for_s=1.0))
    assert not list(tmp_path.iterdir())


def test_records_that_arrive_from_now_on(topics: Topics, kafka: KafkaConnection, tmp_path: Path) -> None:
    topics.create("orders", 2)
    _produce(kafka, "orders", _orders(100))
    with KafkaFeeder(kafka, [GeneratedFeed("orders")]) as feeder:
        feeder.offer({"orders": 1000.0})
        found = record(kafka, "orders", tmp_path / "orders.parquet", TopicRange(2000, for_s=60.0))
    rows = _sorted(found.file)
    assert found.records == len(rows) == 2000
    assert found.columns[5:] == ("id", "value_key", "at", "padding"), "and none of the records that were there"
    assert Counter(row["key"] == row["value_key"] for row in rows) == {True: 2000}


def test_the_command_prints_what_it_recorded_and_skew_reads_it(
    topics: Topics, kafka: KafkaConnection, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics.create("orders", 2)
    _produce(kafka, "orders", _orders(700))
    file, to = tmp_path / "orders.parquet", ["--bootstrap", kafka.bootstrap]
    assert run(["record", "--topic", "orders", *to, "--out", str(file), "--records", "140", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["topic"], printed["records"]) == ("orders", 140) and sum(printed["partitions"].values()) == 140
    assert run(["skew", str(file), "--key", "key", "--parallelism", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["distinct_keys"]["value"] == 7
    assert run(["record", "--topic", "order", *to, "--out", str(file)]) == 2
    assert "there is no topic 'order'" in capsys.readouterr().err


@pytest.mark.slow
def test_wrong_options_and_a_broker_that_is_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["record", "--topic", "t", "--bootstrap", "127.0.0.1:9", "--out"]
    file = str(tmp_path / "t.parquet")
    for arguments, code, said in (
        ([*given, file], 1, "no Kafka broker answers at 127.0.0.1:9"),
        ([*given, file, "--values", "xml"], 2, "--values must be one of auto, json, none, but got 'xml'"),
        ([*given, file, "--setting", "ssl"], 2, "a setting must be KEY=VALUE, but got 'ssl'"),
        ([*given, file, "--for", "soon"], 2, "a duration must be like 90s"),
        ([*given, str(tmp_path / "t.csv")], 2, "must end in .parquet, but got 't.csv'"),
        ([*given, str(tmp_path / "no" / "t.parquet")], 2, "does not exist; create it"),
    ):
        assert run(arguments) == code
        assert said in capsys.readouterr().err


@pytest.mark.slow
def test_a_broker_that_goes_away_meanwhile_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testbeds.kafka.recording.sampling._SILENCE_S", 1.0)
    with LocalBroker() as broker:
        broker.start()
        Topics(broker.connection).create("orders", 1)
        _produce(broker.connection, "orders", _orders(1))
        threading.Timer(3.0, broker.kill).start()
        with pytest.raises(SluiceError, match="no Kafka broker answers"):
            record(broker.connection, "orders", tmp_path / "orders.parquet", TopicRange(1000, for_s=500.0))
