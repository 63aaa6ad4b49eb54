"""Keeping processors awake, on this machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from testbeds.flink.lab.awake import Awake
from testbeds.flink.lab.cpu import threads_named
from testbeds.flink.local.processes import LocalCluster

pytestmark = pytest.mark.slow
OWNER = """
import sys, time
from pathlib import Path
from testbeds.flink.lab.awake import Awake
print(Awake(Path(sys.argv[1]), Path(sys.argv[2])).pid, flush=True)
time.sleep(600)
"""


def _until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def _command(process: psutil.Process) -> list[str]:
    """Empty of one that has ended: other tests' children may end at any time."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []


def _spinning(pid: int) -> list[int]:
    return threads_named(pid, "sluice-awake-")


@pytest.fixture
def awake(jdk: Path, kit: Path) -> Iterator[Awake]:
    made = Awake(jdk, kit)
    try:
        yield made
    finally:
        made.close()
    made.close()
    assert not _runs(made.pid)


def test_each_processor_has_a_thread_that_gives_way_to_all_others(awake: Awake) -> None:
    _until(lambda: len(_spinning(awake.pid)) == len(os.sched_getaffinity(0)))
    for thread in threads_named(awake.pid, ""):
        assert os.sched_getscheduler(thread) == os.SCHED_IDLE
        assert os.getpriority(os.PRIO_PROCESS, thread) == 19
    used_s = psutil.Process(awake.pid).cpu_times().user
    _until(lambda: psutil.Process(awake.pid).cpu_times().user > used_s + 0.1)


def test_it_ends_with_an_owner_that_is_killed(jdk: Path, kit: Path, root: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(jdk), str(kit)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as owner:
        try:
            assert owner.stdout is not None
            pid = int(owner.stdout.readline())
            _until(lambda: bool(_spinning(pid)))
        finally:
            owner.send_signal(signal.SIGKILL)
    _until(lambda: not _runs(pid))


def test_quotas_keep_processors_awake_where_a_hypervisor_takes_them(
    flink: Path, kit: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own() -> list[int]:
        return [p.pid for p in psutil.Process().children() if "sluice.Awake" in _command(p)]

    with LocalCluster() as cluster:
        for stolen, number in ((0.0, 0), (0.01, 1)):
            times = SimpleNamespace(user=1.0, system=1.0, steal=stolen)
            monkeypatch.setattr(psutil, "cpu_times", lambda times=times: times)
            cluster.limit_cpu(True)
            # A process that has just been executed has no command line for a moment.
            _until(lambda number=number: len(own()) == number)
        cluster.limit_cpu(False)
        assert own() == []
        cluster.limit_cpu(True)
    assert own() == []
