"""Processes of a local cluster: what is refused before they start, and that none outlives its owner."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from models.errors import Infeasible, SluiceError
from models.job import Job
from models.plan.slots import PlacedTask
from testbeds.feeding.control import SourceControl
from testbeds.flink.lab.cpu import new_cpu_group
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import Payment, dataflow_program

pytestmark = pytest.mark.slow
OWNER = """
import sys, time
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
with LocalCluster() as cluster:
    print(cluster.folder, flush=True)
    cluster.ensure(Profile((TaskManager("tm1", 1, 900, cores=0.5),)))
    time.sleep(600)
"""


@pytest.fixture
def cluster(flink: Path, kit: Path) -> Iterator[LocalCluster]:
    with LocalCluster() as made:
        yield made


def _with_folder(folder: Path) -> list[int]:
    """Processes whose command line names a folder."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                command = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in command:
                found.append(int(process.name))
    return found


def test_no_process_outlives_an_owner_that_is_killed(flink: Path, kit: Path, root: Path) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True, cwd=root)
    try:
        assert owner.stdout is not None
        folder = Path(owner.stdout.readline().strip())
        until = time.monotonic() + 60
        while len(_with_folder(folder)) < 2 or not (folder / "tm1.log").exists():
            assert time.monotonic() < until and owner.poll() is None
            time.sleep(0.1)
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.communicate()
    while left := _with_folder(folder):
        assert time.monotonic() < until, f"still there: {left}"
        time.sleep(0.1)
    assert folder.exists()
    with LocalCluster():
        assert not folder.exists(), "the next cluster removes what the killed one left"
        assert not list(Path("/sys/fs/cgroup").glob(f"**/sluice-{folder.name}-*"))


def test_memory_that_is_not_there_is_no_answer(cluster: LocalCluster) -> None:
    with pytest.raises(Infeasible, match=r"needs 10000640 MiB, but \d+ are available"):
        cluster.ensure(Profile((TaskManager("tm1", 1, 1e7),)))


def test_a_process_that_ends_at_its_start_is_reported_with_its_last_words(cluster: LocalCluster) -> None:
    wrong = Profile((TaskManager("tm1", 1, 900),), settings={"state.backend.type": "rocksdb", "rest.port": "none"})
    with pytest.raises(SluiceError, match=r"process \w+ ended with code 1: .*none"):
        cluster.ensure(wrong)
    assert not _with_folder(cluster.folder)
    with pytest.raises(SluiceError, match="was not started"):
        _ = cluster.rest


def test_without_the_hook_flink_places_tasks_by_itself(root: Path) -> None:
    """With it, a task whose TaskManager is not there fails the job."""
    job = Job.model_validate(yaml.safe_load((root / "jobs" / "wordcount.yaml").read_text()))
    with LocalCluster(hooked=False) as cluster, SourceControl() as control:
        cluster.ensure(Profile((TaskManager("tm1", 1, 900),)))
        tasks = dict.fromkeys(job.order, 1)
        program = dataflow_program(job, tasks, control.address, {}, payment=Payment.PACED, slot_per_task=False)
        jar = cluster.uploaded(cluster.kit)
        cluster.place([PlacedTask(v.id, 0, "tm9") for v in cluster.rest.plan(jar, program)[0]])
        cluster.rest.wait_until_running(cluster.rest.run(jar, program), 60.0)


def test_a_quota_holds_a_process_to_its_cores() -> None:
    group = new_cpu_group(f"sluice-test-{os.getpid()}")
    if group is None:
        pytest.skip("control groups of this machine cannot be written")
    burning = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        group.add(burning.pid)
        group.limit(0.25)
        time.sleep(0.2)
        before, begun = _cpu_s(burning.pid), time.monotonic()
        time.sleep(1.0)
        assert (_cpu_s(burning.pid) - before) / (time.monotonic() - begun) <= 0.3
    finally:
        burning.kill()
        burning.wait()
        time.sleep(0.1)
        group.remove()
    assert not group.folder.exists()


def _cpu_s(pid: int) -> float:
    """CPU time that a process has used, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
