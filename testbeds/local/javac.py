"""Compiles what testbeds have written in Java."""

import subprocess
from pathlib import Path
from typing import Final

from models.errors import SluiceError

_RELEASE: Final = "11"
"""The oldest Java that Flink 1.20, 2.3 and Kafka's clients run on."""


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
        raise SluiceError(f"the Java sources could not be compiled with {command[0]}: {done.stderr.strip()[:2000]}")
