"""Feeds topics at a set rate: a Java process writes, and reports what the broker has acknowledged."""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from flink_client.rest.waiting import wait_for
from models.closing import Closing
from models.errors import InvalidInput, SluiceError
from testbeds.feeding.control import SourceControl, SourceReport
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.distribution import class_path, jdk
from testbeds.local.folder import own_folder
from testbeds.local.java_process import end, last_words, start_java
from testbeds.local.machine import check_memory

HEAP_MB: Final = 384
_FEEDER: Final = "sluice.kafka.Feeder"
_START_S: Final = 120.0
_REPORT_S: Final = 0.05
"""Between looks at the reports, which come five times a second."""
MOST_KEYS: Final = 10_000_000
MOST_BYTES: Final = 1 << 19
"""Of a value; a broker takes 1 MiB in one request by default."""


class Feed(Protocol):
    """What is written to one topic, or to several in step."""

    @property
    def name(self) -> str:
        """By which its rate is set."""
        ...

    @property
    def topics(self) -> Sequence[str]: ...

    def line(self, partitions: Mapping[str, int]) -> str:
        """As the Java process reads it (`Feeder.main`).

        Args:
            partitions: of each topic.
        """
        ...


@dataclass(frozen=True)
class GeneratedFeed:
    """Records that are made up: JSON with a number, a key, the time and some padding."""

    topic: str
    keys: int = 1000
    """Number of keys; 0: none."""
    exponent: float = 0.0
    """Of the Zipf law that keys are drawn from; 0: evenly."""
    value_bytes: int = 100
    """Least length of a value."""
    seed: int = 1

    def __post_init__(self) -> None:
        if not (0 <= self.value_bytes <= MOST_BYTES and 0 <= self.keys <= MOST_KEYS and 0 <= self.exponent < 100):
            raise InvalidInput(
                f"a generated feed must have values of at most {MOST_BYTES:,} bytes, at most {MOST_KEYS:,} keys, and an "
                f"exponent from 0 to 100, but got {self}"
            )

    @property
    def name(self) -> str:
        return self.topic

    @property
    def topics(self) -> Sequence[str]:
        return (self.topic,)

    def line(self, partitions: Mapping[str, int]) -> str:
        drawn = f"{self.keys} {self.exponent!r} {self.value_bytes} {self.seed}"
        return f"{self.name} generate {self.topic} {partitions[self.topic]} {drawn}"


class KafkaFeeder(Closing):
    """Feeds topics, which must exist, until it is closed. Nothing is written until a rate was offered.

    Its reports arrive at `control`, as of one task of each feed.
    """

    def __init__(
        self, connection: KafkaConnection, feeds: Sequence[Feed], settings: Mapping[str, str] | None = None
    ) -> None:
        """
        Args:
            settings: of Kafka's Java producer, besides those that the feeder sets.

        Raises:
            InvalidInput: two feeds have the same name, or a topic does not exist.
            SluiceError: there is no Java or no Maven, or the process did not start.
        """
        self._names = [feed.name for feed in feeds]
        if len(set(self._names)) < len(self._names):
            raise InvalidInput(f"feeds must have different names, but got {', '.join(self._names)}")
        admin = connection.admin()
        topics = {topic for feed in feeds for topic in feed.topics}
        partitions = {topic: len(connection.partitions(admin.list_topics, topic)) for topic in topics}
        check_memory(2 * HEAP_MB, "the Kafka feeder", "stop what else runs on it")
        self._jdk, self._class_path = jdk(), class_path()
        self._folder, self._owner = own_folder("kafka-feeders")
        self._log = self._folder / "feeder.log"
        self.control = SourceControl()
        lines = [feed.line(partitions) for feed in feeds]
        self._process = self._start(lines, {"bootstrap.servers": connection.bootstrap, **(settings or {})})
        try:
            self._wait_for_reports("none")
        except BaseException:
            self.close()
            raise

    def offer(self, rates: Mapping[str, float]) -> str:
        """From now on write these records/s, by the names of the feeds; others stay as they are. Returns the id of the order.

        Raises:
            InvalidInput: there is no such feed, or a rate is below 0 or infinite.
            SluiceError: the process has ended.
        """
        if unknown := sorted(set(rates) - set(self._names)):
            raise InvalidInput(f"there is no feed {unknown[0]!r}; there are {', '.join(self._names)}")
        order = self.control.offer(rates)
        self._wait_for_reports(order, *rates)
        return order

    def report(self, name: str) -> SourceReport:
        """The last report of a feed.

        Raises:
            SluiceError: the process has ended.
        """
        self.check()
        return self.control.reports(name)[0]

    def check(self) -> None:
        """
        Raises:
            SluiceError: the process has ended; it names the end of its output.
        """
        if (code := self._process.poll()) is not None:
            raise SluiceError(f"the Kafka feeder ended with code {code}: {last_words(self._log)}")

    def close(self) -> None:
        """End the process and remove its files."""
        end(self._process)
        self.control.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._owner.close()

    def _start(self, lines: Sequence[str], settings: Mapping[str, str]) -> "subprocess.Popen[bytes]":
        feeds, producer = self._folder / "feeds", self._folder / "producer.properties"
        feeds.write_text("\n".join(lines), encoding="utf-8")
        producer.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        (self._folder / "log4j2.properties").write_text("rootLogger.level=OFF\n", encoding="utf-8")
        flags = [f"-Xmx{HEAP_MB}m", "-XX:+UseSerialGC", "-cp", self._class_path]
        flags += [f"-Dlog4j2.configurationFile={(self._folder / 'log4j2.properties').as_uri()}"]
        program = [_FEEDER, self.control.address, str(producer), str(feeds)]
        return start_java(self._jdk, flags, program, self._log.with_suffix(".out"), {})

    def _wait_for_reports(self, order: str, *names: str) -> None:
        def all_follow() -> bool | None:
            self.check()
            reports = [self.control.reports(name).get(0) for name in names or self._names]
            return all(one is not None and one.order == order for one in reports) or None

        wait_for(all_follow, _START_S, "the first report of the Kafka feeder", pause_s=_REPORT_S)
