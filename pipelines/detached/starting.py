"""Starts the process of an attempt, unless there is one to follow."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from pipelines.detached.attempts import Attempt, Attempts

Start = Callable[[Attempt], None]


def joined(attempts: Attempts, limit_s: float, start: Start) -> Attempt:
    """The open attempt at a stage; without one, a new attempt, for which `start` is called."""
    while True:
        newest = attempts.newest()
        if newest is not None and newest.is_open:
            return newest
        attempt = attempts.of(1 if newest is None else newest.number + 1)
        try:
            attempt.begin(limit_s)
        except FileExistsError:  # begun by someone else meanwhile
            continue
        start(attempt)
        return attempt


def start_process(
    request_uri: str, stage: str, number: int, log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start the process of an attempt in a session of its own, with the code of this one.

    Args:
        log: file for its output.
        environment: variables besides those of this process.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(dict.fromkeys(path for path in sys.path if path))
    with log.open("ab") as sink:
        return subprocess.Popen(
            [sys.executable, "-m", "pipelines.detached", request_uri, stage, str(number)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path, **environment},
        )
