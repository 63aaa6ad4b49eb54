"""A program of a user that reads Kafka, as a jar; it knows nothing of Sluice."""

from pathlib import Path

from testbeds.flink.local.distribution import FLINK, Release, flink_home
from testbeds.kafka.distribution import connector_jars
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk
from testbeds.local.user_jar import user_jar

SOURCE = Path(__file__).parents[3] / "benchmarks" / "running" / "kafka_job" / "java" / "KafkaJob.java"


def kafka_program(folder: Path, release: Release = FLINK) -> Path:
    """The jar of `KafkaJob` with what it needs beside Flink, as users build theirs."""
    home, needed = flink_home(release=release), connector_jars(release.version)
    classes = folder / "classes"
    compile_java([SOURCE], classes, f"{home / 'lib'}/*:{needed}/*", find_jdk())
    return user_jar([classes, *sorted(needed.glob("*.jar"))], folder / "kafka-job.jar")
