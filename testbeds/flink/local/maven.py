"""Finds Maven, which the kit's own tests need; the kit itself is compiled without it (`kit.py`)."""

import shutil
from pathlib import Path

from models.errors import SluiceError


def find_maven() -> Path:
    """The command `mvn` on the PATH.

    Raises:
        SluiceError: there is none; the message is one line with the fix.
    """
    if (found := shutil.which("mvn")) is None:
        raise SluiceError(
            "Maven is needed, but there is no mvn on the PATH; install it (Debian, Ubuntu: apt-get install maven)"
        )
    return Path(found)
