"""A name in the workspace has one holder at a time; a holder that dies loses it."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import fsspec
import pytest

from pipelines.store.backends import FsspecStore
from pipelines.store.locks import held
from pipelines.store.workspace import Workspace

HOLDER = """
import sys, time
from pipelines.store.workspace import Workspace
with Workspace(sys.argv[1]).lock("runs/q5/r/lock", print):
    print("held", flush=True)
    time.sleep(600)
"""


def test_of_several_threads_one_at_a_time_holds_a_key(workspace: Workspace) -> None:
    inside, most, said = 0, 0, []

    def hold() -> None:
        nonlocal inside, most
        with workspace.lock("runs/q5/r/lock", said.append):
            inside += 1
            most = max(most, inside)
            time.sleep(0.02)
            inside -= 1

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert (inside, most) == (0, 1)
    assert said and all("makes the same run; waiting for its results" in remark for remark in said)


def test_other_keys_are_not_waited_for(workspace: Workspace) -> None:
    with workspace.lock("runs/q5/a/lock", pytest.fail), workspace.lock("runs/q5/b/lock", pytest.fail):
        pass


def test_a_killed_process_loses_the_key(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    said: list[str] = []
    killer = threading.Timer(0.5, os.kill, (holder.pid, signal.SIGKILL))
    killer.start()
    with Workspace(tmp_path).lock("runs/q5/r/lock", said.append):
        assert holder.wait(timeout=10) == -signal.SIGKILL
    assert said == [f"process {holder.pid} on {os.uname().nodename} makes the same run; waiting for its results"]


@pytest.mark.slow
def test_a_lease_that_is_not_renewed_passes_to_one_waiter() -> None:
    files = fsspec.filesystem("memory")
    files.store.clear()
    store = FsspecStore(files, "/leases")
    store.create("lock/000000000001", b"process 1 on a machine that died\nx")
    inside, most = 0, 0

    def hold() -> None:
        nonlocal inside, most
        with held(store, "lock", lambda remark: None, lease_s=1.0):
            inside += 1
            most = max(most, inside)
            time.sleep(1.5)  # longer than the lease, which its holder renews
            inside -= 1

    began = time.monotonic()
    threads = [threading.Thread(target=hold) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert (inside, most) == (0, 1)
    assert time.monotonic() - began > 1.0 + 2 * 1.5, "neither waited for the lease of the dead process"


def test_a_lease_goes_on_after_it_could_not_be_renewed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files = fsspec.filesystem("memory")
    files.store.clear()
    store, written = FsspecStore(files, "/leases"), []
    write = store.write

    def fails_first(path: str, content: bytes) -> None:
        written.append(path)
        if len(written) == 1:
            raise OSError("the network is away")
        write(path, content)

    monkeypatch.setattr(store, "write", fails_first)
    with held(store, "lock", pytest.fail, lease_s=0.06):  # renewed every 10 ms
        deadline = time.monotonic() + 10
        while len(written) < 3 and time.monotonic() < deadline:
            time.sleep(0.01)
    assert len(written) >= 3
