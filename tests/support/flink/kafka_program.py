"""A program of a user that reads Kafka, as a jar; it knows nothing of Sluice."""

import zipfile
from functools import partial
from pathlib import Path

from testbeds.flink.local.distribution import FLINK, Release, flink_home
from testbeds.kafka.distribution import connector_jars
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk

SOURCE = Path(__file__).parents[3] / "benchmarks" / "running" / "kafka_job" / "java" / "KafkaJob.java"


def kafka_program(folder: Path, release: Release = FLINK) -> Path:
    """The jar of `KafkaJob` with what it needs beside Flink, as users build theirs."""
    home, needed = flink_home(release=release), connector_jars(release.version)
    classes, made = folder / "classes", folder / "kafka-job.jar"
    compile_java([SOURCE], classes, f"{home / 'lib'}/*:{needed}/*", find_jdk())
    with zipfile.ZipFile(made, "w") as out:
        for path in sorted(classes.rglob("*.class")):
            out.write(path, str(path.relative_to(classes)))
        seen: set[str] = set()
        for jar in map(partial(zipfile.ZipFile), sorted(needed.glob("*.jar"))):
            with jar:
                for name in set(jar.namelist()) - seen:
                    seen.add(name)
                    if not name.startswith("META-INF/MANIFEST"):
                        out.writestr(name, jar.read(name))
    return made
