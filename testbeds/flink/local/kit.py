"""Compiles the Java kit of `testbeds/flink/java` to a jar: rated sources, operators with stated costs, placement."""

import hashlib
import subprocess
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from models.errors import SluiceError
from testbeds.flink.local.cache import cache_folder, made_once
from testbeds.flink.local.distribution import FLINK

SOURCES: Final = Path(__file__).parent.parent / "java"
ENTRY_CLASS: Final = "sluice.Run"
_RELEASE: Final = "11"
"""The oldest Java that Flink 1.20 runs on."""


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


def compile_java(sources: list[Path], classes: Path, class_path: str, jdk: Path) -> None:
    """Compile to class files; warnings are errors.

    Raises:
        SluiceError: javac failed; the message has the beginning of its output.
    """
    command = [str(jdk / "bin" / "javac"), "--release", _RELEASE, "-Xlint:all,-classfile,-path,-processing", "-Werror"]
    done = subprocess.run(
        [*command, "-encoding", "UTF-8", "-d", str(classes), "-cp", class_path, *map(str, sources)],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SluiceError(f"the Java kit could not be compiled with {command[0]}: {done.stderr.strip()[:2000]}")
