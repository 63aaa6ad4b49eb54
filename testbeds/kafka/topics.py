"""Creates topics, and removes what it created when it is closed, or the next time, if the process was killed."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicCollection
from confluent_kafka.cimpl import NewTopic

from flink_client.rest.waiting import wait_for
from models.closing import Closing
from models.errors import InvalidInput, SluiceError
from testbeds.kafka.connection import ANSWER_S, KafkaConnection
from testbeds.ledger import Entry, Ledger, abandoned

KEEP_MB: Final = 4096.0
"""What a topic keeps if nothing else is asked for, MiB."""
_SEGMENTS: Final = 8
"""Segments of a full partition: Kafka drops whole segments only."""
_LEAST_SEGMENT_BYTES: Final = 1 << 20
_SEEN_S: Final = 30.0
_TOPIC: Final = "topic"
_GROUPS: Final = "groups"
"""Kinds of what is on record."""


class Topics(Closing):
    """Topics of a cluster. Those created here are deleted when it is closed, with the consumer groups that read only them.

    Where SIGTERM must close it, too, use it inside `testbeds.local.termination.closing_on_sigterm`.
    """

    def __init__(self, connection: KafkaConnection, say: Callable[[str], None] = lambda what: None) -> None:
        """
        Args:
            say: called with what a killed process had left, and was removed.

        Raises:
            SluiceError: no broker answers.
        """
        self._connection, self._admin, self._say = connection, connection.admin(), say
        self._created: list[str] = []
        with connection.answers():  # fails where no broker answers; a list of groups would only be empty
            cluster = str(self._admin.list_topics(timeout=ANSWER_S).cluster_id)
        self._ledger = Ledger(cluster)
        for entries in abandoned(cluster):
            self._remove_abandoned(entries)
        self._groups_before = self.groups()

    def names(self) -> set[str]:
        """All topics but Kafka's own."""
        with self._connection.answers():
            known = self._admin.list_topics(timeout=ANSWER_S).topics
        return {name for name in known if not name.startswith("__")}

    def groups(self) -> set[str]:
        """All consumer groups."""
        with self._connection.answers():
            return {
                group.group_id for group in self._admin.list_consumer_groups(request_timeout=ANSWER_S).result().valid
            }

    def partitions(self, topic: str) -> int:
        return len(self._connection.partitions(self._admin.list_topics, topic))

    def create(
        self, name: str, partitions: int, keep_mb: float = KEEP_MB, settings: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic, and wait until it can be written to.

        Args:
            keep_mb: of which the oldest records beyond are dropped, MiB; a backlog must fit in.
            settings: of the topic, besides.

        Raises:
            InvalidInput: there is one of this name, or the name or a setting is not allowed.
            SluiceError: the cluster refused.
        """
        if partitions < 1:
            raise InvalidInput(f"a topic must have 1 partition or more, but {name!r} was given {partitions}")
        if name in self.names():  # asked before, so that closing never deletes what somebody else has created
            raise self._exists(name)
        kept = max(_SEGMENTS * _LEAST_SEGMENT_BYTES, round(keep_mb * 2**20 / partitions))
        # By size only: records may have been recorded long ago.
        limits = {"retention.ms": "-1", "retention.bytes": str(kept), "segment.bytes": str(kept // _SEGMENTS)}
        topic = NewTopic(name, partitions, 1, config={**limits, **(settings or {})})
        if not self._created:
            self._ledger.note({"kind": _GROUPS, "before": json.dumps(sorted(self._groups_before))})
        self._ledger.note({"kind": _TOPIC, "name": name})
        self._created.append(name)  # before the request, whose answer SIGTERM may cut off
        try:
            self._wait(self._admin.create_topics([topic], operation_timeout=ANSWER_S)[name])
        except KafkaException as error:
            raise self._refusal(name, error.args[0]) from error
        wait_for(lambda: self._can_be_written(name, partitions) or None, _SEEN_S, f"the topic {name!r}")
        self._ledger.note({"kind": _TOPIC, "name": name, "id": self._id(name)})

    def delete(self, *names: str) -> None:
        """Delete topics; one that does not exist is no error.

        Raises:
            SluiceError: the cluster refused.
        """
        if not names:
            return
        for name, answer in self._admin.delete_topics(list(names), operation_timeout=ANSWER_S).items():
            try:
                self._wait(answer)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._connection.in_words(error.args[0]) from error
            if name in self._created:
                self._created.remove(name)
        wait_for(lambda: not self.names() & set(names) or None, _SEEN_S, f"the deletion of {', '.join(names)}")

    def delete_groups(self, *names: str) -> None:
        """Delete consumer groups without members; one that does not exist is no error.

        Raises:
            SluiceError: the cluster refused, for one since a group has members.
        """
        for answer in self._admin.delete_consumer_groups(list(names)).values() if names else ():
            try:
                self._wait(answer)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise self._connection.in_words(error.args[0]) from error

    def close(self) -> None:
        """Delete the topics that were created here, and the groups that have read nothing else."""
        try:
            if self._created:
                self._remove(set(self._created), self._groups_before)
            self._ledger.close()
        finally:
            self._ledger.close(removed=False)

    def _remove(self, topics: Collection[str], groups_before: Collection[str]) -> None:
        others = self.names() - set(topics)  # of a topic that was deleted, Kafka drops a group's offsets later
        read = {group: self._reads(group) for group in self.groups() - set(groups_before)}
        readers = [group for group, its in read.items() if its & set(topics) and not its & others]
        self.delete(*topics)
        self.delete_groups(*readers)

    def _remove_abandoned(self, entries: Sequence[Entry]) -> None:
        """Remove topics that are the very ones; of one of the same name only, nobody knows who created it."""
        ids = {entry["name"]: entry["id"] for entry in entries if "id" in entry}
        unsure = {entry["name"] for entry in entries if entry["kind"] == _TOPIC} - ids.keys()
        there = self.names()
        ours = {name for name, id_ in ids.items() if name in there and self._id(name) == id_}
        if ours:
            before = [group for entry in entries if entry["kind"] == _GROUPS for group in json.loads(entry["before"])]
            self._remove(ours, before)
            self._say(
                f"removed topics that a killed measurement left at {self._connection.bootstrap}: {', '.join(ours)}"
            )
        if unsure & there:
            self._say(
                f"a measurement was killed while it created {', '.join(unsure & there)} at {self._connection.bootstrap}; "
                f"delete what is not yours"
            )

    def _id(self, topic: str) -> str:
        with self._connection.answers():
            found = self._admin.describe_topics(TopicCollection([topic]), request_timeout=ANSWER_S)[topic]
            return str(found.result(2 * ANSWER_S).topic_id)

    def _reads(self, group: str) -> set[str]:
        asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        with self._connection.answers():
            return {place.topic for place in asked[group].result(ANSWER_S).topic_partitions}

    def _can_be_written(self, name: str, partitions: int) -> bool:
        """Whether each partition has a leader."""
        with self._connection.answers():
            known = self._admin.list_topics(name, timeout=ANSWER_S).topics[name].partitions
        return len(known) == partitions and all(one.leader >= 0 for one in known.values())

    def _refusal(self, name: str, error: KafkaError) -> SluiceError:
        if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            self._created.remove(name)
            return self._exists(name)
        if error.code() in (KafkaError.INVALID_CONFIG, KafkaError.TOPIC_EXCEPTION, KafkaError.INVALID_REQUEST):
            self._created.remove(name)
            return InvalidInput(f"the topic {name!r} cannot be created: {error.str()}")
        return self._connection.in_words(error)

    def _exists(self, name: str) -> InvalidInput:
        return InvalidInput(f"there is a topic {name!r} at {self._connection.bootstrap} already; name another")

    def _wait(self, answer: "Future[Any]") -> None:
        """Errors of the cluster are left to the caller."""
        try:
            answer.result(2 * ANSWER_S)
        except TimeoutError as error:
            raise self._connection.in_words(KafkaError(KafkaError._TIMED_OUT)) from error
