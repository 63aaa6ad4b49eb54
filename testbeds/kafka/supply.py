"""What feeds the topics that a measured job reads: a broker, and for each run of the job new topics and a feeder."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from models.closing import Closing
from models.errors import InvalidInput, SluiceError
from testbeds.feeding.control import SourceControl
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.feeding.feeder import Feed, GeneratedFeed, KafkaFeeder
from testbeds.kafka.feeding.replay import TopicRecording, replayed
from testbeds.kafka.topics import Topics

REPLAY: Final = "recordings"
"""Name of the feed of all recorded topics."""
WRITTEN_MB: Final = 1024
"""What a topic keeps that the job itself writes, MiB."""
OF_BROKER: Final = {"auto.create.topics.enable": "true", "log.retention.bytes": str(WRITTEN_MB << 20)}
"""Topics that a job writes come into being with the first record."""


@dataclass(frozen=True)
class FedTopic:
    """A topic that a program reads, and what is written to it."""

    name: str
    partitions: int
    content: GeneratedFeed | TopicRecording
    share: float = 1.0
    """Of the records of all generated topics, as a weight; recorded ones have that of their records."""
    source: str | None = None
    """The source that reads it, as Flink names it; None: the only one, or the one of the topic's name."""


@dataclass(frozen=True)
class KafkaFeed:
    """All topics that a program reads, and where they are."""

    topics: tuple[FedTopic, ...]
    bootstrap: str | None = None
    """HOST:PORT of brokers that run; None: one is started on this machine."""


class FedTopics(Closing):
    """Topics of one run, and what writes to them; both are removed when it is closed."""

    def __init__(
        self, connection: KafkaConnection, topics: Sequence[FedTopic], say: Callable[[str], None] = lambda what: None
    ) -> None:
        """
        Args:
            say: called with what could not be removed.

        Raises:
            InvalidInput: there is a topic of such a name already, or a recording cannot be read.
            SluiceError: no broker answers, or there is no Java.
        """
        feeds = _feeds(topics)
        self.shares = _shares(feeds, topics)
        self._connection, self._say = connection, say
        self._topics = Topics(connection, say)
        try:
            for topic in topics:
                self._topics.create(topic.name, topic.partitions)
            self.feeder = KafkaFeeder(connection, feeds)
        except BaseException:
            self._topics.close()
            raise

    @property
    def control(self) -> SourceControl:
        """Where the feeder reports, as one task of each feed in `shares`."""
        return self.feeder.control

    def offer(self, rate: float) -> str:
        """From now on write these records/s to all topics together. Returns the id of the order.

        Raises:
            SluiceError: the feeder has ended.
        """
        return self.feeder.offer({name: share * rate for name, share in self.shares.items()})

    def check(self) -> None:
        """
        Raises:
            SluiceError: the feeder has ended.
        """
        self.feeder.check()

    def close(self) -> None:
        """End the feeder and remove the topics; brokers that are away keep theirs, which is said."""
        try:
            self.feeder.close()
        finally:
            try:
                self._topics.close()
            except SluiceError as error:
                self._say(f"topics may be left at {self._connection.bootstrap}: {error}")


class KafkaSupply(Closing):
    """A broker for the runs of a job, one after the other: one that is started at the first use, or a running one."""

    def __init__(self, of: KafkaFeed, say: Callable[[str], None] = lambda what: None) -> None:
        """
        Args:
            say: called with remarks for people.
        """
        self._of, self._say = of, say
        self._broker: LocalBroker | None = None

    @property
    def connection(self) -> KafkaConnection:
        """Where the topics are; a broker that has ended is replaced by a new one, without topics.

        Raises:
            SluiceError: the broker could not be started.
        """
        if self._of.bootstrap is not None:
            return KafkaConnection(self._of.bootstrap)
        if self._broker is not None and not self._broker.runs:
            self.close()
        if self._broker is None:
            self._broker = LocalBroker(OF_BROKER)
            self._broker.start()
        return self._broker.connection

    def feed(self) -> FedTopics:
        """New topics, and what feeds them.

        Raises:
            InvalidInput, SluiceError: as `FedTopics`.
        """
        return FedTopics(self.connection, self._of.topics, self._say)

    def close(self) -> None:
        """Stop a broker that was started; may be called twice."""
        if self._broker is not None:
            self._broker.close()
            self._broker = None


def records_of(topics: Sequence[FedTopic]) -> dict[str, float]:
    """How many of the records each topic gets, as a weight.

    Raises:
        InvalidInput: a recording cannot be read, or only some topics are recorded.
    """
    recorded = [topic for topic in topics if isinstance(topic.content, TopicRecording)]
    if not recorded:
        return {topic.name: topic.share for topic in topics}
    return {topic.name: float(replayed(topic.name, [topic.content]).records) for topic in recorded}  # type: ignore[list-item]


def _feeds(topics: Sequence[FedTopic]) -> list[Feed]:
    generated = [topic.content for topic in topics if isinstance(topic.content, GeneratedFeed)]
    recorded = [topic.content for topic in topics if isinstance(topic.content, TopicRecording)]
    if generated and recorded:
        raise InvalidInput(
            f"all topics of a program must be recorded, or all be made up, but {recorded[0].topic!r} is recorded and "
            f"{generated[0].topic!r} is not; record it, too: sluice record --topic {generated[0].topic}"
        )
    return [replayed(REPLAY, recorded)] if recorded else list(generated)


def _shares(feeds: Sequence[Feed], topics: Sequence[FedTopic]) -> Mapping[str, float]:
    """Of the rate, by feed."""
    if len(feeds) == 1:
        return {feeds[0].name: 1.0}
    weights = {topic.name: topic.share for topic in topics}
    return {feed.name: weights[feed.name] / sum(weights.values()) for feed in feeds}
