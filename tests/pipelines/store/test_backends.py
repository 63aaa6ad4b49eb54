"""A reader of the workspace sees whole files or none, whatever happens to the writers."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem

from models.errors import SluiceError
from pipelines.store.backends import FsspecStore
from pipelines.store.workspace import Workspace


def test_create_refuses_what_exists_and_keeps_it(workspace: Workspace) -> None:
    workspace.create_bytes("plans/v1", b"first")
    with pytest.raises(FileExistsError, match="plans/v1 exists"):
        workspace.create_bytes("plans/v1", b"second")
    assert workspace.read_bytes("plans/v1") == b"first"
    assert workspace.list() == ["plans/v1"]


def test_of_many_creators_at_once_one_succeeds(workspace: Workspace) -> None:
    begin, created = threading.Barrier(16), []

    def create(number: int) -> None:
        begin.wait()
        try:
            workspace.create_bytes("plans/v1", str(number).encode())
            created.append(number)
        except FileExistsError:
            pass

    threads = [threading.Thread(target=create, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(created) == 1
    assert workspace.read_bytes("plans/v1") == str(created[0]).encode()


def test_a_place_without_exclusive_creation_says_so() -> None:
    class Plain(DirFileSystem):
        """Stands for back ends that look first and write then."""

        _pipe_file = None

    store = FsspecStore(Plain("/", LocalFileSystem()), "/nowhere")
    with pytest.raises(SluiceError, match="cannot promise"):
        store.create("a", b"")


WRITE_FOREVER = """
import sys
from pipelines.store.workspace import Workspace
workspace, number = Workspace(sys.argv[1]), 0
while True:
    workspace.write_bytes("big", bytes([number % 251]) * 4_000_000)
    number += 1
"""


def test_readers_see_whole_files_while_a_writer_is_at_work_and_after_it_was_killed(local: Workspace) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITE_FOREVER, local.url])
    try:
        until = time.monotonic() + 30
        while not local.exists("big") and time.monotonic() < until:
            time.sleep(0.02)
        seen = set()
        while len(seen) < 3 and time.monotonic() < until:
            content = local.read_bytes("big")
            assert content == content[:1] * 4_000_000
            seen.add(content[0])
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert len(seen) == 3
    last = local.read_bytes("big")
    assert last == last[:1] * 4_000_000
    assert local.list() == ["big"]


def test_leftovers_of_a_killed_writer_are_not_listed(local: Workspace, tmp_path: Path) -> None:
    local.write_bytes("a/b", b"x")
    (tmp_path / "a" / ".tmp-0123456789abcdef").write_bytes(b"half")
    assert local.list() == local.list("a")[:1] == ["a/b"]


WRITE_WITHOUT_ROOM = """
import resource, signal, sys
from pipelines.store.workspace import Workspace
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    getattr(Workspace(sys.argv[1]), sys.argv[2])(sys.argv[3], b"new" * 1000)
except OSError as error:
    print(error.strerror)
"""


@pytest.mark.parametrize(("method", "key"), [("write_bytes", "kept"), ("create_bytes", "other")])
def test_a_write_that_runs_out_of_room_leaves_everything_as_it_was(
    local: Workspace, tmp_path: Path, method: str, key: str
) -> None:
    local.write_bytes("kept", b"old")
    done = subprocess.run(
        [sys.executable, "-B", "-c", WRITE_WITHOUT_ROOM, local.url, method, key], capture_output=True, text=True
    )
    assert done.stdout.strip() == os.strerror(27), done.stderr  # EFBIG
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert local.read_bytes("kept") == b"old"


def test_files_are_readable_as_the_umask_says(local: Workspace, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        local.write_bytes("written", b"")
        local.create_bytes("created", b"")
    finally:
        os.umask(before)
    assert {oct((tmp_path / name).stat().st_mode & 0o777) for name in ("written", "created")} == {"0o640"}
