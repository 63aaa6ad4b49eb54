"""Replays recorded topics in step: their records are merged in the order in which they arrived, and written at one rate.

So a topic's share of the records is as recorded at any moment, and records that were close in time stay close: joins join.
Times are re-based, on the clock of all topics together (the latest time that has arrived in any of them):

* NOW: a record gets the time of writing, less what it was late by. At a higher rate, windows hold more records, as they
  would in production.
* RECORDED: times stay as far apart as they were. Windows and joins find the same records at any rate.

The file that the feeder reads is described in `../java/sluice/kafka/ReplayedRecords.java`.
"""

import hashlib
import json
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from heapq import merge
from pathlib import Path
from typing import IO, Final

import pyarrow as pa
import pyarrow.parquet as pq

from models.errors import InvalidInput
from testbeds.flink.feeding.recordings import as_text, digest_of, recording
from testbeds.kafka.recording.sampling import SCHEMA
from testbeds.local.cache import cache_folder, made_once

MOST_BYTES: Final = (1 << 31) - 1
_FILE, _FACTS = "records", "facts.json"
_HEAD, _LENGTH, _TIME = struct.Struct(">iiqq"), struct.Struct(">i"), struct.Struct(">iii")
_TEXT, _WITH_T, _WITH_ZONE = 4, 1, 2
_NO_TIME: Final = (-1, 0, 0)


class ReplayTime(StrEnum):
    NOW = "now"
    RECORDED = "recorded"


@dataclass(frozen=True)
class TopicRecording:
    """A recorded topic: Parquet by `sluice record`, or a file of JSON lines or Parquet whose rows become JSON values."""

    topic: str
    file: Path
    time: str | None = None
    """Field of the values with the event time: epoch milliseconds, or a text. A file by `sluice record` needs none."""
    key: str | None = None
    """Field with the key; None: that of a file by `sluice record`, otherwise no key."""


@dataclass(frozen=True)
class ReplayedFeed:
    """Recorded topics that are written in step."""

    name: str
    topics: tuple[str, ...]
    file: Path
    records: int
    period_ms: int
    """What the recording spans."""
    partitions: Mapping[str, int]
    """Of each topic as it was recorded; 0: unknown."""
    time: ReplayTime = ReplayTime.NOW

    def line(self, partitions: Mapping[str, int]) -> str:
        words = [self.name, "replay", self.file.absolute().as_uri(), self.time.value, str(self.period_ms)]
        for topic in self.topics:
            as_recorded = 0 < self.partitions[topic] <= partitions[topic]
            words += [topic, str(partitions[topic]), "as-recorded" if as_recorded else "by-key"]
        return " ".join(words)


@dataclass(frozen=True)
class _Arrived:
    """A record in the order of arrival."""

    clock_ms: int
    """When it arrived: never before the one that arrived before it."""
    topic: int
    time_ms: int
    """Event time."""
    partition: int
    key: bytes | None
    value: bytes | None
    place: tuple[int, int, int]
    """Where in the value its time is: start, length, form."""


def replayed(name: str, recordings: Sequence[TopicRecording], time: ReplayTime = ReplayTime.NOW) -> ReplayedFeed:
    """A feed of recorded topics; the merged file is made once and cached.

    Raises:
        InvalidInput: a file cannot be read, has no records or no times, or there are more than 2 GiB.
    """
    if not recordings or len({one.topic for one in recordings}) < len(recordings) or " " in name:
        raise InvalidInput(
            f"a replay must have a name without blanks, and one recording for each topic, but got {recordings}"
        )
    digest = hashlib.sha256()
    for one in recordings:
        recording(one.file)
        digest.update(repr((one.topic, one.time, one.key, digest_of(one.file))).encode())
    folder = made_once(cache_folder() / "replays" / digest.hexdigest()[:16], lambda made: _merge(recordings, made))
    facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
    topics = tuple(one.topic for one in recordings)
    return ReplayedFeed(name, topics, folder / _FILE, facts["records"], facts["period_ms"], facts["partitions"], time)


def _merge(recordings: Sequence[TopicRecording], made: Path) -> None:
    streams = [_arrivals(number, one) for number, one in enumerate(recordings)]
    partitions = [0] * len(recordings)
    records, first, clock = 0, None, 0
    with (made / _FILE).open("wb") as file:
        for one in merge(*streams, key=lambda arrived: arrived.clock_ms):
            first = one.time_ms if first is None else first
            clock = max(one.time_ms, clock)
            _write(file, one, first, clock)
            partitions[one.topic] = max(partitions[one.topic], one.partition + 1)
            records += 1
        if file.tell() > MOST_BYTES:
            raise InvalidInput(
                f"recordings of {file.tell():,} bytes cannot be replayed; 2 GiB is the most, record less"
            )
    assert first is not None
    # The next round begins one mean gap after the last record.
    period = max(1, round((clock - first) * records / max(1, records - 1)))
    names = {one.topic: count for one, count in zip(recordings, partitions, strict=True)}
    facts = {"records": records, "period_ms": period, "partitions": names}
    (made / _FACTS).write_text(json.dumps(facts), encoding="utf-8")


def _write(file: IO[bytes], one: _Arrived, first_ms: int, clock_ms: int) -> None:
    file.write(_HEAD.pack(one.topic, one.partition, one.time_ms - first_ms, clock_ms - one.time_ms))
    for content in (one.key, one.value):
        file.write(_LENGTH.pack(-1 if content is None else len(content)) + (content or b""))
    file.write(_TIME.pack(*one.place))


def _arrivals(number: int, one: TopicRecording) -> Iterator[_Arrived]:
    """The records of one topic.

    Raises:
        InvalidInput: there are none.
    """
    count = 0
    try:
        of_sluice = one.file.suffix.lower() == ".parquet" and _is_of_sluice(one.file)
        for found in _of_sluice(number, one) if of_sluice else _of_lines(number, one):
            count += 1
            yield found
    except pa.ArrowException as error:
        raise InvalidInput(f"{one.file} must be a Parquet file, but cannot be read: {error}") from None
    if not count:
        raise InvalidInput(f"{one.file} has no records to replay")


def _is_of_sluice(file: Path) -> bool:
    with pq.ParquetFile(file) as parquet:
        return set(SCHEMA.names) <= set(parquet.schema_arrow.names)


def _of_sluice(number: int, one: TopicRecording) -> Iterator[_Arrived]:
    """In the order of Kafka's timestamps; their order within a partition is that of the offsets."""
    order = [(name, "ascending") for name in ("timestamp", "partition", "offset")]
    table = pq.read_table(one.file, columns=SCHEMA.names).sort_by(order)
    clock = 0
    for batch in table.to_batches():
        for row in batch.to_pylist():
            key, value = _bytes(row["key"]), _bytes(row["value"])
            stamp = round(row["timestamp"].timestamp() * 1000)
            time_ms, place = (stamp, _NO_TIME) if one.time is None or value is None else _time_in(value, one)
            if one.key is not None and value is not None:
                key = _key_in(value, one)
            clock = max(clock, stamp)
            yield _Arrived(clock, number, time_ms, row["partition"], key, value, place)


def _of_lines(number: int, one: TopicRecording) -> Iterator[_Arrived]:
    """In the order of the lines."""
    if one.time is None:
        raise InvalidInput(
            f"{one.file} was not written by 'sluice record': name the field with the time of its records"
        )
    text = as_text(recording(one.file))
    if text.format != "json":
        raise InvalidInput(f"{one.file} cannot be replayed into Kafka: it must hold JSON lines, or be Parquet")
    clock = 0
    with text.path.open("rb") as lines:
        for line in lines:
            if value := line.strip():
                time_ms, place = _time_in(value, one)
                clock = max(clock, time_ms)
                yield _Arrived(clock, number, time_ms, -1, _key_in(value, one) if one.key else None, value, place)


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _field(value: bytes, one: TopicRecording, name: str) -> object:
    try:
        return json.loads(value)[name]
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(f"{one.file}: a value has no field {name!r}: {value[:60]!r}") from None


def _key_in(value: bytes, one: TopicRecording) -> bytes | None:
    assert one.key is not None
    found = _field(value, one, one.key)
    return None if found is None else (found if isinstance(found, str) else json.dumps(found)).encode()


def _time_in(value: bytes, one: TopicRecording) -> tuple[int, tuple[int, int, int]]:
    """Event time of a JSON value, and where it is written."""
    assert one.time is not None
    found = _field(value, one, one.time)
    pattern = rb'"%s"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9.eE+-]+)' % re.escape(one.time.encode())
    # A field of this name inside another object may come before it.
    match = next((m for m in re.finditer(pattern, value) if json.loads(m[1]) == found), None)
    if isinstance(found, bool) or match is None:
        raise InvalidInput(f"{one.file}: the field {one.time!r} must be a time, but is {json.dumps(found)[:60]}")
    start, length = match.start(1), match.end(1) - match.start(1)
    if isinstance(found, int | float):
        return round(found), (start, length, 0)
    try:
        time = datetime.fromisoformat(str(found))
    except ValueError:
        raise InvalidInput(f"{one.file}: the field {one.time!r} must be a time, but is {str(found)[:60]!r}") from None
    form = _TEXT | (_WITH_T if "T" in str(found) else 0) | (_WITH_ZONE if time.tzinfo else 0)
    return round((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000), (start, length, form)
