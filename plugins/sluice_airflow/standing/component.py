"""One component of Airflow as a process that is restarted when it ends or hangs."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

import psutil

HUNG_S: Final = 240.0
"""Time without a heartbeat after which a component is restarted, seconds."""
PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
"""Pause before a restart: doubled each time, unless the component ran for longer than this."""
STOP_S: Final = 30.0

Say = Callable[[str, str], None]
"""Print a line of a component."""


class Component:
    """A process in a session of its own, by which its children are found after its end.

    Args:
        command: program and arguments.
        say: prints lines of the process and of the supervisor.
    """

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str], say: Say) -> None:
        self.name, self._command, self._environment, self._say = name, list(command), dict(environment), say
        self.restarts = 0
        self.healthy: bool | None = None
        """None until the first heartbeat of this process."""
        self._process: subprocess.Popen[bytes] | None = None
        self._began_s = self._seen_s = self._due_s = 0.0
        self._pause_s = PAUSE_S

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return self._process.pid if self._process is not None else None

    def beat(self, healthy: bool | None, now_s: float) -> None:
        """Record whether Airflow has a recent heartbeat of the component; None: unknown. Changes are printed."""
        if healthy is not False:
            self._seen_s = now_s
        if healthy is None or healthy == self.healthy or (self.healthy is None and not healthy):
            return
        self.healthy = healthy
        self._say(self.name, "healthy" if healthy else "unhealthy: no heartbeat")

    def supervise(self, now_s: float) -> None:
        """Start the process if it does not run; stop it if it hangs."""
        if self._process is None:
            if now_s >= self._due_s:
                self._start(now_s)
            return
        code = self._process.poll()
        if code is None and now_s - self._seen_s > HUNG_S:
            self._say(self.name, f"no heartbeat for {HUNG_S:g} s")
            self.stop()
            code = self._process.returncode
        if code is not None:
            self._end(code, now_s)

    def terminate(self) -> None:
        """Ask the process to end."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.terminate()

    def stop(self) -> None:
        """End the process and whatever it started."""
        if self._process is None:
            return
        self.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_S)
        _kill_session(self._process.pid)
        self._process.wait()

    def _start(self, now_s: float) -> None:
        self._began_s = self._seen_s = now_s
        self.healthy = None
        self._process = subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_heed_interrupts,
        )
        self._say(self.name, f"started as process {self._process.pid}")
        threading.Thread(target=self._copy_output, args=(self._process,), daemon=True).start()

    def _end(self, code: int, now_s: float) -> None:
        assert self._process is not None
        _kill_session(self._process.pid)
        self._process = None
        self._pause_s = PAUSE_S if now_s - self._began_s > LONGEST_PAUSE_S else min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._due_s = now_s + self._pause_s
        self.restarts += 1
        self.healthy = None
        self._say(self.name, f"ended with exit code {code}; restart {self.restarts} in {self._pause_s:g} s")

    def _copy_output(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._say(self.name, line.decode(errors="replace").rstrip())


def airflow(*arguments: str) -> list[str]:
    """The command line of Airflow in this environment."""
    return [sys.executable, "-m", "airflow", *arguments]


def _kill_session(leader: int) -> None:
    """Kill the processes of a session; tasks are in process groups of their own, so a group is not enough."""
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError, PermissionError):
            if os.getsid(process.pid) == leader:
                process.kill()


def _heed_interrupts() -> None:
    """Restore SIGINT, by which Airflow stops: processes that a shell starts in the background ignore and inherit that."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
