"""What arrives in topics, and what a consumer group has consumed: from offsets alone, so that nothing is read.

The rate that arrives is what was consumed plus the growth of the lag; both sides are differences of offsets. Two limits:

* A group's offsets are those that it has *committed*. Flink commits when a checkpoint completes, so they advance in steps;
  differences should span several checkpoints.
* In topics written by transactions, the marker at the end of each transaction takes an offset, too.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin._listoffsets import OffsetSpec

from models.errors import InvalidInput
from testbeds.kafka.connection import ANSWER_S, KafkaConnection

_EARLIEST: Final[OffsetSpec] = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: Final[OffsetSpec] = OffsetSpec.latest()  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class PartitionOffsets:
    """Of one partition; offsets count records from its creation on."""

    topic: str
    partition: int
    first: int
    """Of the oldest record that is kept."""
    end: int
    """That the next record to arrive will get."""
    committed: int | None
    """Of the record that the group reads next; None: it has committed nothing."""

    @property
    def lag(self) -> int | None:
        """Records that wait for the group; those that were dropped before it read them do not."""
        return None if self.committed is None else max(0, self.end - max(self.first, self.committed))


@dataclass(frozen=True)
class OffsetReading:
    """All partitions of some topics at one time."""

    at_s: float
    """`time.monotonic`."""
    partitions: tuple[PartitionOffsets, ...]

    @property
    def lag(self) -> int | None:
        """Of all partitions; None: the group has committed nothing in one that holds records."""
        lags = [one.lag if one.lag is not None or one.end > one.first else 0 for one in self.partitions]
        return None if None in lags else sum(lag for lag in lags if lag is not None)


class OffsetReader:
    """Reads offsets of topics, and of a consumer group."""

    def __init__(self, connection: KafkaConnection, topics: Sequence[str], group: str | None = None) -> None:
        """
        Raises:
            InvalidInput: there is no such topic or group.
            SluiceError: no broker answers.
        """
        self._connection, self._group = connection, group
        self._admin = connection.admin()
        self._places = [
            TopicPartition(topic, number)
            for topic in topics
            for number in connection.partitions(self._admin.list_topics, topic)
        ]
        if group is not None:
            self._check_group(group)

    def read(self) -> OffsetReading:
        """
        Raises:
            SluiceError: no broker answers, or one refuses.
        """
        committed, at_s = self._committed(), time.monotonic()
        first, end = self._listed(_EARLIEST), self._listed(_LATEST)
        return OffsetReading(
            at_s,
            tuple(
                PartitionOffsets(
                    topic, number, first[topic, number], end[topic, number], committed.get((topic, number))
                )
                for topic, number in first
            ),
        )

    def _listed(self, which: OffsetSpec) -> dict[tuple[str, int], int]:
        asked = self._admin.list_offsets(dict.fromkeys(self._places, which), request_timeout=ANSWER_S)
        with self._connection.answers():
            return {
                (place.topic, place.partition): answer.result(2 * ANSWER_S).offset for place, answer in asked.items()
            }

    def _committed(self) -> dict[tuple[str, int], int]:
        if self._group is None:
            return {}
        asked = self._admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(self._group)], request_timeout=ANSWER_S
        )
        with self._connection.answers():
            found = asked[self._group].result(2 * ANSWER_S).topic_partitions or []
        return {(place.topic, place.partition): place.offset for place in found if place.offset >= 0}

    def _check_group(self, group: str) -> None:
        with self._connection.answers():
            listed = self._admin.list_consumer_groups(request_timeout=ANSWER_S).result(2 * ANSWER_S)
        known = sorted(one.group_id for one in listed.valid)
        if group not in known:
            raise InvalidInput(
                f"there is no consumer group {group!r} at {self._connection.bootstrap}; it has "
                f"{', '.join(known[:5]) or 'none'}. A job on Flink has one once it has completed a checkpoint"
            )
