"""Control groups of this machine: which of a process' threads a quota holds."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbeds.flink.lab.cpu import CpuGroup, cpu_groups, new_cpu_group, threads_named

HIERARCHIES = {1: Path("/sys/fs/cgroup/cpu"), 2: Path("/sys/fs/cgroup/unified")}
THREADS = """
import sys, threading
from pathlib import Path
def wait(name):
    Path("/proc/thread-self/comm").write_text(name)
    ready.wait()
    ended.wait()
ready, ended = threading.Barrier(3), threading.Event()
for name in ("C2 CompilerThre", "task"):
    threading.Thread(target=wait, args=(name,), daemon=True).start()
ready.wait()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def process() -> Iterator[int]:
    """Three threads: the first, one of a compiler's name and one of a task's."""
    command = [sys.executable, "-c", THREADS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as popen:
        assert popen.stdout is not None and popen.stdout.readline() == "ready\n"
        yield popen.pid


@pytest.fixture(params=HIERARCHIES)
def group(request: pytest.FixtureRequest, process: int) -> Iterator[CpuGroup]:
    made = CpuGroup(HIERARCHIES[request.param] / f"sluice-test-{os.getpid()}", request.param)
    try:
        made.make()
    except OSError as error:
        pytest.skip(f"no control groups of version {request.param} can be written here: {error}")
    yield made
    for thread in _threads(process):
        (made.folder.parent / ("cgroup.procs" if made.version == 2 else "tasks")).write_text(str(thread))
    made.remove()
    made.remove()
    assert not made.folder.exists()


def _threads(process: int) -> set[int]:
    return {int(path.name) for path in Path(f"/proc/{process}/task").iterdir()}


def _held(group: CpuGroup) -> set[int]:
    return {
        int(line) for line in (group.held / ("cgroup.threads" if group.version == 2 else "tasks")).read_text().split()
    }


def test_threads_are_found_by_how_their_names_begin(process: int) -> None:
    assert len(threads_named(process, "C1 Compiler", "C2 Compiler")) == 1
    assert len(threads_named(process, "")) == 3
    assert threads_named(2**22 + 1, "") == []


def test_a_group_holds_all_threads_but_those_let_out(group: CpuGroup, process: int) -> None:
    group.add(process)
    assert _held(group) == _threads(process) and len(_held(group)) == 3
    (compiler,) = threads_named(process, "C2 Compiler")
    group.let_out(compiler)
    assert _held(group) == _threads(process) - {compiler}
    group.let_out(2**22 + 1)


def test_a_new_group_takes_a_quota_and_is_found_by_its_name() -> None:
    name = f"sluice-test-quota-{os.getpid()}"
    group = new_cpu_group(name)
    if group is None:
        pytest.skip("no control groups with a quota can be written here")
    try:
        for cores in (0.3, 0.15):
            group.limit(cores)
        assert _amounts(group, "cpu.max", "cpu.cfs_quota_us")[0] == "15000"
        if (group.held / ("cpu.max.burst" if group.version == 2 else "cpu.cfs_burst_us")).exists():
            assert _amounts(group, "cpu.max.burst", "cpu.cfs_burst_us") == ["15000"]
        weight = group.folder / ("cpu.weight" if group.version == 2 else "cpu.shares")
        assert int(weight.read_text()) == (10_000 if group.version == 2 else 262_144)
        group.limit(None)
        assert int(weight.read_text()) == (100 if group.version == 2 else 1024)
        assert _amounts(group, "cpu.max", "cpu.cfs_quota_us")[0] in ("max", "-1")
        assert [found.folder for found in cpu_groups(name)] == [group.folder]
    finally:
        group.remove()


def _amounts(group: CpuGroup, second: str, first: str) -> list[str]:
    """What stands in a file, by its names in versions 2 and 1."""
    return (group.held / (second if group.version == 2 else first)).read_text().split()
