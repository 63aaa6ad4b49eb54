"""The programs, by what a user would upload and submit."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from flink_client.rest.jars import JarProgram
from testbeds.flink.local.kit import ENTRY_CLASS
from testbeds.flink.programs.stated_costs import program_of
from testbeds.kafka.distribution import connector_jars
from testbeds.local.maven import jars
from testbeds.local.user_jar import user_jar

HERE: Final = Path(__file__).parent
BENCHMARK: Final = "this benchmark"
EXAMPLES: Final = "org.apache.flink.streaming.examples"
BOTH: Final = ("1.20", "2.3")
GENERATORS_RELEASE: Final = "1.20"
"""Of Flink: its examples have a job that writes the state machine's events to a broker of one's choice."""
CHECKPOINTS: Final = {"execution.checkpointing.interval": "5 s", "parallelism.default": "1"}


@dataclass(frozen=True)
class Topic:
    """What a program reads, and in what it commits."""

    name: str
    group: str
    about: float
    """Records/s that the program takes, roughly: how much to fill in for a drain."""
    partitions: int = 2


@dataclass(frozen=True)
class Program(ABC):
    """One program and how it is started."""

    name: str
    releases: Sequence[str]
    """Versions of Flink for which it can be had."""
    topic: Topic | None = None
    """None: it makes up its records itself."""
    writes: Sequence[str] = ()
    """Topics that must exist."""
    rates: Sequence[float] = field(default=(0.0,))
    """Of a program that makes up its records: those it is started with; 0: the only one that it has."""

    @abstractmethod
    def jar(self, folder: Path, release: str) -> Path:
        """What is uploaded."""

    @abstractmethod
    def program(self, bootstrap: str, rate: float) -> JarProgram:
        """What is run of it."""


class Example(Program):
    """One of Flink's, from its own jar."""

    def jar(self, folder: Path, release: str) -> Path:
        return next(_examples(release).glob(f"flink-examples-*-{self.name}.jar"))

    def program(self, bootstrap: str, rate: float) -> JarProgram:
        return JarProgram(f"{EXAMPLES}.windowing.{self.name}", (), CHECKPOINTS)


class Assembled(Program):
    """One of Flink's, of which Maven has the classes only: with the connectors that it names, in one jar."""

    def jar(self, folder: Path, release: str) -> Path:
        parts = [p for p in sorted(_examples(release).glob("*.jar")) if not p.stem.endswith("Windowing")]
        made = folder / f"examples-{release}.jar"
        return made if made.exists() else user_jar(parts, made)


class StateMachine(Assembled):
    def program(self, bootstrap: str, rate: float) -> JarProgram:
        assert self.topic is not None
        arguments = ("--kafka-topic", self.topic.name, "--brokers", bootstrap)
        return JarProgram(f"{EXAMPLES}.statemachine.StateMachineExample", arguments, CHECKPOINTS)

    def generator(self, bootstrap: str, topic: str, rate: float) -> JarProgram:
        """Flink's own job that writes such events, of `GENERATORS_RELEASE`."""
        arguments = ("--kafka-topic", topic, "--brokers", bootstrap, "--rps", f"{rate:.0f}")
        return JarProgram(f"{EXAMPLES}.statemachine.KafkaEventsGeneratorJob", arguments, CHECKPOINTS)


class WindowJoin(Assembled):
    def program(self, bootstrap: str, rate: float) -> JarProgram:
        arguments = ("--rate", f"{rate / 2:.0f}")  # of each of its two sources
        return JarProgram(f"{EXAMPLES}.join.WindowJoin", arguments, CHECKPOINTS)


class Sql(Program):
    """A script with Kafka tables; the jar is the connector's, and the runner of scripts is the cluster's."""

    def jar(self, folder: Path, release: str) -> Path:
        if release.startswith("2."):
            (only,) = connector_jars(release).glob("*.jar")
            return only
        parts = _examples(release).glob("*.jar")
        made = folder / "kafka-connector.jar"
        return user_jar(sorted(p for p in parts if "examples" not in p.name), made)

    def program(self, bootstrap: str, rate: float) -> JarProgram:
        script = (HERE / "clicks.sql").read_text(encoding="utf-8").replace("{bootstrap}", bootstrap)
        document = {"name": "clicks by key", "sql": script, "slot_per_task": False}
        submitted = program_of(document, CHECKPOINTS)
        assert submitted.entry_class == ENTRY_CLASS
        return submitted


class Nexmark(Program):
    """Apache Beam's, with its own generator of events."""

    def jar(self, folder: Path, release: str) -> Path:
        return user_jar(sorted(jars(HERE / "beam.pom.xml", BENCHMARK).glob("*.jar")), folder / "nexmark.jar")

    def program(self, bootstrap: str, rate: float) -> JarProgram:
        limited = ["--isRateLimited=true", f"--firstEventRate={rate:.0f}", f"--nextEventRate={rate:.0f}"]
        arguments = (
            *("--runner=FlinkRunner", "--streaming=true", "--query=5", "--numEvents=0", "--numEventGenerators=1"),
            *("--sinkType=DEVNULL", "--manageResources=false", "--monitorJobs=false", "--parallelism=1"),
            *("--windowSizeSec=10", "--windowPeriodSec=5", "--attachedMode=false"),
            *(limited if rate else ()),
        )
        return JarProgram("org.apache.beam.sdk.nexmark.Main", arguments, CHECKPOINTS)


def _examples(release: str) -> Path:
    """The folder of Flink's examples and the connectors that they name."""
    return jars(HERE / f"examples-{release}.pom.xml", BENCHMARK)


PROGRAMS: Final = (
    StateMachine(
        "StateMachineExample",
        BOTH,
        Topic("state-machine-events", "stateMachineExample", 130_000.0, partitions=1),
        writes=("recorded-events",),
    ),
    Example("SessionWindowing", BOTH),
    Example("TopSpeedWindowing", BOTH),
    WindowJoin("WindowJoin", BOTH, rates=(200.0,)),
    Nexmark("Nexmark", ("1.20",), rates=(2000.0,)),
    Sql("SQL", BOTH, Topic("clicks", "clicks-by-key", 60_000.0), writes=("clicks-by-key",)),
)
