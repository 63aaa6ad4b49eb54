"""Where the logs of a running job's topics end, as their broker knows."""

from collections.abc import Collection, Iterable, Mapping

from flink_client.metrics.partitions import Place, reported_name
from models.errors import InvalidInput, SluiceError
from testbeds.kafka.connection import ANSWER_S
from testbeds.kafka.named import kafka_connection
from testbeds.kafka.offsets import OffsetReader


class BrokerLogEnds:
    """Asks a Kafka broker. It joins no consumer group, and reads no record."""

    def __init__(self, address: str) -> None:
        """
        Args:
            address: `host:port`, several separated by commas, or `connection:NAME`.

        Raises:
            InvalidInput: that is neither.
        """
        self._connection = kafka_connection(address)
        self._readers: dict[frozenset[str], OffsetReader] = {}

    def __call__(self, places: Collection[Place]) -> Mapping[Place, float]:
        """The offset that the next record of each partition will get.

        Raises:
            InvalidInput: there is no such topic, or there are several that Flink reports by the same name.
            SluiceError: no broker answers, or there is no such partition.
        """
        topics = frozenset(topic for topic, _ in places)
        ends = self._read(topics)
        if not ends.keys() >= set(places):
            del self._readers[topics]  # a reader knows the partitions that there were when it was made
            ends = self._read(topics)
        for topic, number in sorted(set(places) - ends.keys()):
            at = self._connection.bootstrap
            raise SluiceError(f"Flink reads partition {number} of the topic {topic!r}, which {at} does not have")
        return ends

    def _read(self, topics: frozenset[str]) -> dict[Place, float]:
        """Of all partitions of topics, by the names that Flink reports."""
        if topics not in self._readers:
            self._readers[topics] = OffsetReader(self._connection, self._named(topics))
        try:
            read = self._readers[topics].read()
        except SluiceError:
            # A client keeps the leaders that it knew, which a broker refuses that was started again.
            del self._readers[topics]
            raise
        return {(reported_name(one.topic), one.partition): float(one.end) for one in read.partitions}

    def _named(self, topics: Iterable[str]) -> list[str]:
        """The topics' own names; that which Flink reports where there is no such topic."""
        with self._connection.answers():
            known = sorted(self._connection.admin().list_topics(timeout=ANSWER_S).topics)
        at, named = self._connection.bootstrap, []
        for topic in sorted(topics):
            found = [name for name in known if reported_name(name) == topic]
            if len(found) > 1:
                raise InvalidInput(
                    f"the topic {topic!r} of Flink's metrics may be {' or '.join(found)} at {at}, since "
                    "Flink writes _ for a dot; leave the broker out, so that what waits is taken as the sources report it"
                )
            named.append(found[0] if found else topic)
        return named
