"""Starts Java programs that end with the process that started them, and quotes their logs."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_STOP_S: Final = 5.0


def start_java(
    jdk: Path, flags: Sequence[str], program: Sequence[str], output: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a main class by `sluice.Child`, which must be on the class path that the flags state.

    Args:
        program: main class and its arguments.
        output: file for standard output and error; its folder is the working directory.
        environment: variables besides those of this process.
    """
    with output.open("wb") as file:
        # A process group of its own: Ctrl-C reaches this process, which then stops them in order.
        return subprocess.Popen(
            [str(jdk / "bin" / "java"), *flags, "sluice.Child", str(os.getpid()), *program],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            process_group=0,
            cwd=output.parent,
            env=os.environ | environment,
        )


def end(process: subprocess.Popen[bytes], within_s: float = _STOP_S) -> None:
    """Ask a process to end, and kill it when it does not."""
    process.terminate()
    try:
        process.wait(max(0.0, within_s))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def last_words(log: Path, lines: int = 3) -> str:
    """The last errors of a log; without one, the JVM's output, which is beside it with the ending `.out`."""
    for path in (log, log.with_suffix(".out")):
        text = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []
        errors = [line for line in text if " ERROR " in line or "Exception" in line or "rror:" in line]
        if found := errors[-lines:] or (text[-lines:] if path.suffix == ".out" else []):
            return " | ".join(line.strip() for line in found)
    return "its log is empty"
