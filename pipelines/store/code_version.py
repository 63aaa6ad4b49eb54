"""The version of the code that made an artifact."""

import functools
import importlib.metadata
import subprocess
from pathlib import Path


@functools.cache
def code_version() -> str:
    """Version of the installed package, and the commit if it runs from a git checkout."""
    version = importlib.metadata.version("sluice")
    try:
        commit = subprocess.run(
            ["git", "describe", "--always", "--dirty"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return version
    return f"{version}+{commit}"
