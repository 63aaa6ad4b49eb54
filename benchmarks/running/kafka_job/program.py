"""The program as users build it, and what jobs of it cost at each step."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from testbeds.flink.local.distribution import Release, flink_home
from testbeds.kafka.distribution import connector_jars
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk
from testbeds.local.maven import jars
from testbeds.local.user_jar import user_jar

HERE: Final = Path(__file__).parent
PARK_US: Final = 70.0
"""What waiting takes beyond the time asked for, about."""


@dataclass(frozen=True)
class Kind:
    """A job that is slow on purpose, and what binds it."""

    name: str
    vertex: str
    """Part of the name of the vertex that binds."""
    cause: str
    parse_us: int = 600
    count_us: int = 600
    store_us: int = 600
    hot: float = 0.0
    """Share of the records that get one key."""
    chained: bool = False
    """Whether parsing is chained to the source."""
    partitions: int = 8
    tasks: int = 2

    @property
    def takes(self) -> float:
        """Records/s that the slow step takes, by the costs alone."""
        each = {"parse": self.parse_us, "count": self.count_us, "store": self.store_us}
        steps = {name: self.tasks * 1e6 / (us + PARK_US) for name, us in each.items()}
        steps["count"] /= self.tasks * (self.hot + (1 - self.hot) / self.tasks)
        if self.chained:
            steps["parse"] *= min(self.partitions, self.tasks) / self.tasks
        return min(steps.values())


KINDS: Final = (
    Kind("even", "count", "CPU", count_us=3000),
    Kind("slow-operator", "parse", "CPU", parse_us=4500),
    Kind("hot-key", "count", "hot key", count_us=2400, hot=0.6),
    Kind("slow-sink", "store", "CPU", store_us=4500),
    Kind("few-partitions", "parse", "source partitions", parse_us=2400, chained=True, partitions=1),
)


def program_jar(folder: Path, release: Release) -> Path:
    """The program's jar with what it needs beside Flink, as users build theirs."""
    of_line = {"1.20": lambda: jars(HERE / "kafka-job.pom.xml", "this benchmark")}
    needed, classes = of_line.get(release.line, lambda: connector_jars(release.version))(), folder / "classes"
    home = flink_home(release=release)
    compile_java(sorted((HERE / "java").glob("*.java")), classes, f"{home / 'lib'}/*:{needed}/*", find_jdk())
    return user_jar([classes, *sorted(needed.glob("*.jar"))], folder / "kafka-job.jar")
