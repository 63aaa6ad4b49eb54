"""Kafka's jars, and what is written in Java here, compiled against them.

`python -m testbeds.kafka.distribution` fetches and compiles them ahead of time.
"""

import hashlib
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Final

from models.errors import InvalidInput, SluiceError
from testbeds.local.cache import cache_folder, made_once
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk
from testbeds.local.maven import jars

NEEDED_BY: Final = "the Kafka testbed"
POM: Final = Path(__file__).parent / "maven" / "kafka.pom.xml"
SOURCES: Final = Path(__file__).parent / "java"
SHARED: Final = (
    "sluice/Child.java",
    "sluice/source/Control.java",
    "sluice/source/Order.java",
    "sluice/source/Mixer.java",
)
"""Sources of Flink's kit that need no Flink."""
VERSIONS: Final = range(17, 26)
"""Java versions that Kafka 4.1 runs on."""
_FLINKS_SOURCES: Final = Path(__file__).parents[1] / "flink" / "java"


def jdk() -> Path:
    """
    Raises:
        SluiceError: there is no JDK that Kafka runs on.
    """
    return find_jdk(VERSIONS, NEEDED_BY)


def kafka_jars() -> Path:
    """The folder of Kafka's jars.

    Raises:
        SluiceError: there is no Maven, or it failed.
    """
    return jars(POM, NEEDED_BY)


def connector_jars(flink_version: str) -> Path:
    """The folder of the jars that a job on Flink needs to read and write Kafka.

    Raises:
        InvalidInput: there is no connector for this version.
        SluiceError: there is no Maven, or it failed.
    """
    names = {"1.20": "connector-1.20", "2": "connector-2"}
    known = [flink_version, ".".join(flink_version.split(".")[:2]), flink_version.split(".")[0]]
    name = next((names[one] for one in known if one in names), None)
    if name is None:
        raise InvalidInput(f"there is a Kafka connector for Flink 1.20 and 2.x, but not for {flink_version}")
    return jars(POM.with_name(f"{name}.pom.xml"), "a job that reads Kafka")


def class_path() -> str:
    """Of the broker and the feeder.

    Raises:
        SluiceError: the jars could not be fetched, or the sources not be compiled.
    """
    folder = kafka_jars()
    digest = hashlib.sha256(POM.read_bytes())
    for path in sources():
        digest.update(path.read_bytes())
    made = made_once(cache_folder() / f"kafka-kit-{digest.hexdigest()[:16]}", partial(_compile, folder))
    return f"{made / 'kafka-kit.jar'}:{folder}/*"


def sources() -> list[Path]:
    """All Java sources, those shared with Flink's kit included."""
    shared = [path for path in _FLINKS_SOURCES.rglob("*.java") if path.as_posix().endswith(SHARED)]
    if len(shared) != len(SHARED):
        raise SluiceError(
            f"{_FLINKS_SOURCES} must hold {', '.join(SHARED)}, but {len(shared)} were found; reinstall Sluice"
        )
    return sorted(shared) + sorted(SOURCES.rglob("*.java"))


def _compile(folder: Path, made: Path) -> None:
    classes = made / "classes"
    compile_java(sources(), classes, f"{folder}/*", jdk())
    with zipfile.ZipFile(made / "kafka-kit.jar", "w", zipfile.ZIP_DEFLATED) as jar:
        for path in sorted(classes.rglob("*.class")):
            jar.write(path, str(path.relative_to(classes)))


def main() -> None:
    """Fetch and compile, and print where the jars are; an error is one message and exit code 1."""
    try:
        class_path()
        print(kafka_jars())
    except SluiceError as error:
        sys.exit(f"failed: {error}")


if __name__ == "__main__":
    main()
