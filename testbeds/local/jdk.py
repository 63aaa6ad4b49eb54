"""Finds a Java development kit, which runs the servers of testbeds and compiles what is written in Java for them."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from models.errors import SluiceError

FLINKS_VERSIONS: Final = range(11, 22)
"""Java versions that Flink 1.20 and 2.3 run on."""
_INSTALLED: Final = Path("/usr/lib/jvm")


def find_jdk(versions: range = FLINKS_VERSIONS, needed_by: str = "the Flink testbed") -> Path:
    """The home folder of a JDK: JAVA_HOME, else that of the `java` on the PATH, else one in /usr/lib/jvm.

    Args:
        versions: major versions that serve.
        needed_by: named in the error.

    Raises:
        SluiceError: there is none; the message is one line with the fix.
    """
    for home in _candidates():
        if _version(home) in versions and all(os.access(home / "bin" / tool, os.X_OK) for tool in ("java", "javac")):
            return home
    raise SluiceError(
        f"{needed_by} needs a Java development kit, version {versions[0]} to {versions[-1]}, and none was found; "
        f"install it (Debian, Ubuntu: apt-get install openjdk-17-jdk-headless) or set JAVA_HOME to where it is"
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if command := shutil.which("java"):
        yield Path(command).resolve().parent.parent
    if _INSTALLED.is_dir():
        yield from sorted(path for path in _INSTALLED.iterdir() if path.is_dir())


def _version(home: Path) -> int | None:
    """The major version by the `release` file that every JDK has; None if it has none."""
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(found.group(1)) if found else None
