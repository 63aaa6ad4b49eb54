"""How to reach a Kafka cluster, and its errors in words."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from models.errors import InvalidInput, SluiceError

ANSWER_S: Final = 10.0
"""How long a cluster may take to answer one request."""
_UNREACHABLE: Final = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._TIMED_OUT,
    KafkaError._RESOLVE,
    KafkaError._NOENT,  # "No leaders found": all brokers of the partitions are away
)


_SECRET: Final = (".password", ".secret", ".key.pem", ".sasl.jaas.config")
"""Ends of the names of settings whose values must not be shown."""


@dataclass(frozen=True)
class KafkaConnection:
    """A cluster, by the addresses of some of its brokers."""

    bootstrap: str
    """HOST:PORT, several separated by commas."""
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), repr=False)
    """Further settings of librdkafka, `security.protocol` for example."""

    def __post_init__(self) -> None:
        for address in self.bootstrap.split(","):
            host, _, port = address.strip().rpartition(":")
            if not (host and port.isdigit()):
                raise InvalidInput(f"an address of a Kafka broker must be HOST:PORT, but got {address.strip()!r}")

    def admin(self) -> AdminClient:
        with self.answers():
            return AdminClient(self._settings())

    def consumer(self, group: str = "sluice", **settings: Any) -> Consumer:
        """A consumer that commits nothing, so that it leaves no group behind."""
        of_consumers = {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "error"}
        with self.answers():
            return Consumer(self._settings() | of_consumers | settings)

    def partitions(self, list_topics: Callable[..., Any], topic: str) -> list[int]:
        """Numbers of a topic's partitions.

        Args:
            list_topics: of an admin client or consumer.

        Raises:
            InvalidInput: there is no such topic; the message has those that there are.
            SluiceError: no broker answers.
        """
        with self.answers():
            known = list_topics(timeout=ANSWER_S).topics
        if topic not in known:
            others = sorted(name for name in known if not name.startswith("__"))
            shown = ", ".join(others[:5]) + (f" and {len(others) - 5} more" if len(others) > 5 else "")
            raise InvalidInput(f"there is no topic {topic!r} at {self.bootstrap}; it has {shown or 'none'}")
        return sorted(known[topic].partitions)

    @contextmanager
    def answers(self) -> Iterator[None]:
        """Turn errors of the client into sentences.

        Raises:
            SluiceError: no broker answers, or one refused what was asked.
        """
        try:
            yield
        except KafkaException as error:
            raise self.in_words(error.args[0]) from error
        except TimeoutError as error:
            raise self.in_words(KafkaError(KafkaError._TIMED_OUT)) from error

    def in_words(self, error: KafkaError) -> SluiceError:
        if error.code() in _UNREACHABLE:
            return SluiceError(
                f"no Kafka broker answers at {self.bootstrap}; check the address, that the broker runs, and the settings of "
                f"the connection (security.protocol and others)"
            )
        if error.code() == KafkaError._INVALID_ARG:
            return InvalidInput(f"a setting of the Kafka connection is wrong: {self._hidden(error.str())}")
        return SluiceError(f"the Kafka cluster at {self.bootstrap} refused: {self._hidden(error.str())}")

    def _hidden(self, text: str) -> str:
        """The text without passwords, since the library quotes values that it does not take."""
        for key, value in self.settings.items():
            if value and key.endswith(_SECRET):
                text = text.replace(value, "***")
        return text

    def _settings(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self.bootstrap,
            "client.id": "sluice",
            "log_level": 0,  # errors are raised; the library would print them, too
            "socket.connection.setup.timeout.ms": round(ANSWER_S * 1000),
            **self.settings,
        }
