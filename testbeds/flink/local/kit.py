"""Compiles the Java kit of `testbeds/flink/java` to a jar: rated sources, operators with stated costs, placement."""

import hashlib
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from testbeds.flink.local.distribution import FLINK
from testbeds.local.cache import cache_folder, made_once
from testbeds.local.javac import compile_java

SOURCES: Final = Path(__file__).parent.parent / "java"
ENTRY_CLASS: Final = "sluice.Run"


def kit_jar(flink_home: Path, jdk: Path) -> Path:
    """The jar of the kit, compiled when its sources have changed.

    It must come before Flink's own jars on the class path, since it replaces one of their classes.

    Raises:
        SluiceError: javac failed.
    """
    digest = hashlib.sha256(FLINK.version.encode())
    for path in _files():
        digest.update(str(path.relative_to(SOURCES)).encode() + path.read_bytes())
    folder = cache_folder() / f"flink-kit-{digest.hexdigest()[:16]}"
    return made_once(folder, partial(_compile, flink_home, jdk)) / "sluice-kit.jar"


def _files() -> Iterator[Path]:
    return (path for path in sorted(SOURCES.rglob("*")) if path.is_file())


def _compile(flink_home: Path, jdk: Path, made: Path) -> None:
    classes = made / "classes"
    compile_java([path for path in _files() if path.suffix == ".java"], classes, f"{flink_home}/lib/*", jdk)
    content = [(classes, path) for path in sorted(classes.rglob("*.class"))]
    content += [(SOURCES, path) for path in _files() if path.suffix != ".java"]
    with zipfile.ZipFile(made / "sluice-kit.jar", "w", zipfile.ZIP_DEFLATED) as jar:
        for folder, path in content:
            jar.write(path, str(path.relative_to(folder)))
