"""A stand-alone Spark cluster of this machine: a master and workers as processes, on loopback."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import psutil
import pyspark

from models.closing import Closing
from spark.java import find_java

SPARK_HOME: Final = Path(pyspark.__file__).parent
START_S: Final = 90.0
STOP_S: Final = 20.0
SMALL: Final = {
    "SPARK_DAEMON_MEMORY": "128m",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_DRIVER_MEMORY": "512m",
    "SLUICE_SPARK_DRIVER_MEMORY": "512m",
    "JAVA_TOOL_OPTIONS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
}
"""Four JVMs run beside that of the tests' own session, with next to no data."""

Found = TypeVar("Found")


def spark_environment() -> dict[str, str]:
    """Of the cluster's processes, and of drivers that use it."""
    own = {"JAVA_HOME": str(find_java()), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_NO_DAEMONIZE": "1"}
    return {**os.environ, **own, **SMALL, "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


class SparkCluster(Closing):
    """A master, to which workers of one core are added. All end with its context, with what they started."""

    def __init__(self, folder: Path) -> None:
        """
        Args:
            folder: for `master.log`, `worker-0.log`, ..., and for what executors write.
        """
        self.folder = folder
        self._daemons: list[subprocess.Popen[bytes]] = []
        try:
            master = self._start("master", "master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
            said = self._said("master", r"Starting Spark master at (spark://127\.0\.0\.1:\d+)", master)
            self.url = said.group(1)
        except BaseException:
            self.close()
            raise

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker of one core, and wait until the master knows it."""
        name = f"worker-{len(self._daemons) - 1}"
        arguments = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
        arguments += ["--work-dir", str(self.folder / "work"), self.url]
        worker = self._start(name, "worker.Worker", *arguments)
        self._said(name, "Successfully registered with master", worker)
        return worker

    def executors(self, worker: subprocess.Popen[bytes]) -> list[psutil.Process]:
        """Processes of a worker that run tasks."""
        found = []
        for process in psutil.Process(worker.pid).children(recursive=True):
            with suppress(psutil.Error):  # it has ended just now
                if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def executor_logs(self) -> list[str]:
        """What each executor of the only application that there was has written, in the order in which they started."""
        files = sorted(self.folder.glob("work/app-*/*/stderr"), key=lambda file: int(file.parent.name))
        return [file.read_text(errors="replace") for file in files]

    def close(self) -> None:
        for daemon in reversed(self._daemons):
            _end(daemon)

    def _start(self, name: str, daemon: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{daemon}", *arguments]
        with (self.folder / f"{name}.log").open("wb") as out:
            process = subprocess.Popen(command, env=spark_environment(), stdout=out, stderr=out, start_new_session=True)
        self._daemons.append(process)
        return process

    def _said(self, name: str, pattern: str, process: subprocess.Popen[bytes]) -> re.Match[str]:
        """Wait until the daemon has written a line that matches."""
        log = self.folder / f"{name}.log"

        def look() -> re.Match[str] | None:
            text = log.read_text(errors="replace")
            assert process.poll() is None, f"{name} ended:\n{text[-2000:]}"
            return re.search(pattern, text)

        return wait_for(look, f"{name} never said {pattern!r}; see {log}")


def wait_for(look: Callable[[], Found | None], otherwise: str, seconds: float = START_S) -> Found:
    """What `look` returns once that is something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError(otherwise)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Of all in its group: executors outlive a worker that was killed for a moment."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(STOP_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
