"""Keeps the processors of a virtual machine from idling during a measurement."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from testbeds.flink.lab.cpu import threads_named

_FLAGS: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx8m")
_LEAST_NICE: Final = 19


class Awake:
    """A process that spins on every processor at the lowest priority (SCHED_IDLE). It ends with this one, even if that is
    killed.

    A hypervisor gives an idle processor to other machines. It comes back late, which counts as stolen time, and with
    foreign cache contents. Under quotas processors become idle many times a second.
    """

    def __init__(self, jdk: Path, kit: Path) -> None:
        """
        Args:
            kit: the jar of `testbeds.flink.local.kit`.
        """
        command = [str(jdk / "bin" / "java"), *_FLAGS, "-cp", str(kit), "sluice.Awake"]
        # A process group of its own: Ctrl-C reaches this process, which then stops it.
        self._popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, process_group=0)
        assert self._popen.stdin is not None
        # The first thread first: threads that it starts later inherit its priority.
        for thread in (self.pid, *threads_named(self.pid, "")):
            with suppress(ProcessLookupError):  # it has ended
                os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
                os.setpriority(os.PRIO_PROCESS, thread, _LEAST_NICE)
        self._popen.stdin.write(b"\n")
        self._popen.stdin.flush()

    @property
    def pid(self) -> int:
        return self._popen.pid

    def close(self) -> None:
        """May be called twice."""
        self._popen.kill()
        self._popen.communicate()
