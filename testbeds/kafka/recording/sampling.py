"""Reads a part of a topic: its last records, or those that arrive from now on. Nothing is committed."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from models.errors import InvalidInput, SluiceError
from testbeds.kafka.connection import ANSWER_S, KafkaConnection

SCHEMA: Final = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("ms", "UTC"),
    }
)
BATCH: Final = 10_000
_WAIT_S: Final = 0.5
_ELECTION: Final = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
_LOOK_EVERY_S: Final = 0.1
_SILENCE_S: Final = 30.0
"""How long records that are there may take to come."""


@dataclass(frozen=True)
class TopicRange:
    """Which records of a topic."""

    records: int
    """At most so many."""
    for_s: float | None = None
    """Those that arrive from now on, for so long; None: the last ones that are there."""

    def __post_init__(self) -> None:
        if self.records < 1 or (self.for_s is not None and not 0 < self.for_s < float("inf")):
            raise InvalidInput(f"a sample must be of 1 record or more, for more than 0 s, but got {self}")


@dataclass(frozen=True)
class Part:
    """Some records, and how much of the sample is there with them, 0-1."""

    records: pa.RecordBatch
    share: float


class TopicSample:
    """A sample of one topic."""

    def __init__(self, connection: KafkaConnection, topic: str, wanted: TopicRange) -> None:
        """
        Raises:
            InvalidInput: there is no such topic, or it has no records and none are waited for.
            SluiceError: no broker answers.
        """
        self._connection, self._topic, self._wanted = connection, topic, wanted
        settings: dict[str, Any] = {
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "queued.min.messages": 10 * BATCH,
        }
        self._consumer: Consumer = connection.consumer(**settings)
        try:
            with connection.answers():
                self._place()
        except BaseException:
            self._consumer.close()
            raise

    @property
    def empty_partitions(self) -> list[int]:
        """Partitions that held no record when the sample was begun."""
        return [n for n, (first, end) in self._kept.items() if end == first]

    def read(self) -> Iterator[Part]:
        """The records, once.

        Raises:
            SluiceError: the broker has gone, or records that are there do not come.
        """
        began, got, heard = time.monotonic(), 0, time.monotonic()
        waiting = {n for n, (first, end) in self._kept.items() if end > first}
        try:
            while got < self._wanted.records and (self._wanted.for_s is not None or waiting):
                elapsed = time.monotonic() - began
                if self._wanted.for_s is not None and elapsed >= self._wanted.for_s:
                    return
                with self._connection.answers():
                    messages = self._consumer.consume(min(BATCH, self._wanted.records - got), timeout=_WAIT_S)
                heard = time.monotonic() if messages else heard
                found = [message for message in messages if self._is_record(message, waiting)]
                got += len(found)
                if found:
                    yield Part(_batch(found), self._share(got, elapsed))
                self._check_silence(heard)
        finally:
            self._consumer.close()

    def _place(self) -> None:
        numbers = self._connection.partitions(self._consumer.list_topics, self._topic)
        places = [TopicPartition(self._topic, number) for number in numbers]
        self._kept = {place.partition: self._offsets(place) for place in places}
        ends = {n: end for n, (_, end) in self._kept.items()}
        starts = self._last(places) if self._wanted.for_s is None else ends
        self._consumer.assign([TopicPartition(self._topic, n, start) for n, start in starts.items()])

    def _offsets(self, place: TopicPartition) -> tuple[int, int]:
        """Offsets of the first record that is kept, and after the last; waits for the election of a leader."""
        until = time.monotonic() + ANSWER_S
        while True:
            try:
                first, end = self._consumer.get_watermark_offsets(place, timeout=ANSWER_S)
                return first, end
            except KafkaException as error:
                if error.args[0].code() not in _ELECTION or time.monotonic() > until:
                    raise
            time.sleep(_LOOK_EVERY_S)

    def _last(self, places: list[TopicPartition]) -> dict[int, int]:
        """Where to begin for about the last records wanted: at one time in all partitions, so that busy ones give more.

        Raises:
            InvalidInput: there are none.
        """
        if all(end == first for first, end in self._kept.values()):
            raise InvalidInput(
                f"the topic {self._topic!r} holds no records in any of its {len(places)} partitions; start what writes to "
                f"it and record for some time (--for 1m), or name another topic"
            )
        starts = {n: first for n, (first, _) in self._kept.items()}
        earliest, latest = 0, round(time.time() * 1000)
        while latest - earliest > 1 and self._between(starts) > self._wanted.records:
            middle = (earliest + latest) // 2
            at = self._starts_at(places, middle)
            if self._between(at) >= self._wanted.records:
                earliest, starts = middle, at
            else:
                latest = middle
        return starts

    def _between(self, starts: dict[int, int]) -> int:
        return sum(end - starts[n] for n, (_, end) in self._kept.items())

    def _starts_at(self, places: list[TopicPartition], time_ms: int) -> dict[int, int]:
        """First offset of each partition at a time or later."""
        asked = [TopicPartition(self._topic, place.partition, time_ms) for place in places]
        found = {p.partition: p.offset for p in self._consumer.offsets_for_times(asked, timeout=ANSWER_S)}
        return {n: end if found[n] < 0 else min(max(found[n], first), end) for n, (first, end) in self._kept.items()}

    def _is_record(self, message: Message, waiting: set[int]) -> bool:
        """Also notes which partitions have been read to where they ended when the sample was begun."""
        error, partition, offset = message.error(), message.partition(), message.offset()
        assert partition is not None and offset is not None
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise self._connection.in_words(error)
            waiting.discard(partition)
            return False
        end = self._kept[partition][1]
        if self._wanted.for_s is None and offset >= end - 1:
            waiting.discard(partition)
        return self._wanted.for_s is not None or offset < end

    def _share(self, got: int, elapsed_s: float) -> float:
        of_records = got / self._wanted.records
        if self._wanted.for_s is None:
            there = sum(end - first for first, end in self._kept.values())
            return min(1.0, got / min(there, self._wanted.records))
        return min(1.0, max(of_records, elapsed_s / self._wanted.for_s))

    def _check_silence(self, heard: float) -> None:
        if time.monotonic() - heard < _SILENCE_S:
            return
        self._connection.partitions(self._consumer.list_topics, self._topic)  # raises where no broker answers
        if self._wanted.for_s is None:
            raise SluiceError(
                f"records of the topic {self._topic!r} that are there did not come within {_SILENCE_S:g} s; check the "
                f"broker's log"
            )


def _batch(messages: list[Message]) -> pa.RecordBatch:
    columns: list[Any] = [
        [message.key() for message in messages],
        [message.value() for message in messages],
        [message.partition() for message in messages],
        [message.offset() for message in messages],
        [message.timestamp()[1] for message in messages],
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=SCHEMA)
