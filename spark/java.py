"""Finding a Java that Spark 4 runs on."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from models.errors import SluiceError

OLDEST: Final = 17
_NEEDED_MODULE: Final = "jdk.incubator.vector"
_INSTALLED: Final = Path("/usr/lib/jvm")


def find_java() -> Path:
    """The home folder of a Java of at least version 17: JAVA_HOME, else the `java` on the PATH, else the oldest that
    is installed in /usr/lib/jvm.

    Raises:
        SluiceError: there is none; the message is one line with the fix.
    """
    for home in _candidates():
        if _serves(home):
            return home
    raise SluiceError(
        f"Spark needs Java {OLDEST} or newer and none was found; install it (Debian, Ubuntu: "
        f"apt-get install openjdk-17-jre-headless) or set JAVA_HOME to where it is"
    )


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home)
    if command := shutil.which("java"):
        yield Path(command).resolve().parent.parent
    installed = [path for path in _INSTALLED.iterdir() if path.is_dir()] if _INSTALLED.is_dir() else []
    yield from sorted(installed, key=lambda home: _version(home) or 0)


def _serves(home: Path) -> bool:
    """Whether it is new enough and has the module that Spark needs at its start."""
    version = _version(home)
    if version is None or version < OLDEST or not os.access(home / "bin" / "java", os.X_OK):
        return False
    modules = re.search(r'^MODULES="([^"]*)"', (home / "release").read_text(encoding="utf-8"), re.MULTILINE)
    return modules is None or _NEEDED_MODULE in modules.group(1).split()


def _version(home: Path) -> int | None:
    """The major version by the `release` file that every JDK and JRE since 8 has; None if it has none."""
    try:
        text = (home / "release").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    return int(found.group(1)) if found else None
