"""Compiles the Java kit of `testbeds/flink/java` to a jar: rated sources, operators with stated costs, placement.

javac does it, in seconds, against the jars of a FLINK_HOME; Maven, which needs more of both, is only for the kit's own tests
(`testbeds/flink/java/pom.xml`).
"""

import hashlib
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from testbeds.flink.local.distribution import FLINK, Release
from testbeds.local.cache import cache_folder, made_once
from testbeds.local.javac import compile_java

PROJECT: Final = Path(__file__).parent.parent / "java"
ENTRY_CLASS: Final = "sluice.Run"


def kit_jar(flink_home: Path, jdk: Path, release: Release = FLINK) -> Path:
    """The jar of the kit for a release of Flink, compiled when its sources have changed.

    It must come before Flink's own jars on the class path, since it replaces one of their classes.

    Args:
        flink_home: of that release.

    Raises:
        SluiceError: javac failed.
    """
    digest = hashlib.sha256(release.version.encode())
    for folder, path in _files(release):
        digest.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    folder = cache_folder() / f"flink-kit-{release.line}-{digest.hexdigest()[:16]}"
    return made_once(folder, partial(_compile, flink_home, jdk, release)) / "sluice-kit.jar"


def _files(release: Release) -> Iterator[tuple[Path, Path]]:
    """The kit's files for a release, each with the folder that its place in the jar is relative to."""
    for folder in ("main/java", f"flink-{release.line}/java", "main/resources"):
        root = PROJECT / "src" / folder
        yield from ((root, path) for path in sorted(root.rglob("*")) if path.is_file())


def _compile(flink_home: Path, jdk: Path, release: Release, made: Path) -> None:
    classes = made / "classes"
    files = list(_files(release))
    compile_java([path for _, path in files if path.suffix == ".java"], classes, f"{flink_home}/lib/*", jdk)
    content = [(classes, path) for path in sorted(classes.rglob("*.class"))]
    content += [(root, path) for root, path in files if path.suffix != ".java"]
    with zipfile.ZipFile(made / "sluice-kit.jar", "w", zipfile.ZIP_DEFLATED) as jar:
        for root, path in content:
            jar.write(path, str(path.relative_to(root)))
