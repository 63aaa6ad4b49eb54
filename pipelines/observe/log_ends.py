"""Where the logs of a running job's topics end, as their broker knows."""

from collections.abc import Collection, Mapping

from flink_client.metrics.partitions import Place
from models.errors import SluiceError
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
            InvalidInput: there is no such topic.
            SluiceError: no broker answers.
        """
        topics = frozenset(topic for topic, _ in places)
        if topics not in self._readers:
            self._readers[topics] = OffsetReader(self._connection, sorted(topics))
        try:
            read = self._readers[topics].read()
        except SluiceError:
            # A client keeps the leaders that it knew, which a broker refuses that was started again.
            del self._readers[topics]
            raise
        return {(one.topic, one.partition): float(one.end) for one in read.partitions}
