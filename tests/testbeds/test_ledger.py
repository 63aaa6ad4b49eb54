"""Records of what is on a cluster: kept for as long as it may be there, and not given to others while its process lives."""

import subprocess
import sys
from pathlib import Path

import pytest

from testbeds.ledger import Ledger, abandoned

KILLED = """
import os, signal
from testbeds.ledger import Ledger
ledger = Ledger("cluster")
ledger.note({"kind": "job", "id": "a"})
ledger.note({"kind": "job", "id": "b"})
os.kill(os.getpid(), signal.SIGKILL)
"""
LEFT = [({"kind": "job", "id": "a"}, {"kind": "job", "id": "b"})]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "sluice" / "on-clusters"


@pytest.fixture
def killed(root: Path) -> None:
    assert subprocess.run([sys.executable, "-c", KILLED], cwd=root, check=False).returncode == -9


@pytest.mark.usefixtures("killed")
def test_the_record_of_a_killed_process_is_read_once_and_for_its_cluster_only(folder: Path) -> None:
    assert list(abandoned("another")) == []
    assert list(abandoned("cluster")) == LEFT
    assert list(abandoned("cluster")) == [] and list(folder.iterdir()) == []


@pytest.mark.usefixtures("killed")
def test_a_record_is_kept_if_what_it_says_could_not_be_removed() -> None:
    for _ in abandoned("cluster"):
        break
    assert list(abandoned("cluster")) == LEFT


@pytest.mark.usefixtures("killed")
def test_a_line_that_was_cut_off_is_left_out(folder: Path) -> None:
    (path,) = folder.iterdir()
    path.write_text(path.read_text()[:-5])
    assert list(abandoned("cluster")) == [LEFT[0][:1]]


@pytest.mark.usefixtures("killed")
def test_a_record_that_vanishes_meanwhile_is_left_out(folder: Path) -> None:
    (first,) = folder.iterdir()
    other = first.with_name(first.stem[:-1] + "~.jsonl")  # sorted after the first
    other.write_text("{}\n")
    found = []
    for record in abandoned("cluster"):
        found.append(record)
        other.unlink()
    assert found == LEFT


def test_the_record_of_a_living_process_is_its_own(folder: Path) -> None:
    with Ledger("cluster") as mine:
        assert not folder.exists()
        mine.note({"kind": "job", "id": "c"})
        assert list(abandoned("cluster")) == []
    assert list(folder.iterdir()) == []


def test_a_record_stays_for_the_next_process_if_something_is_left() -> None:
    with Ledger("cluster") as mine:
        mine.note({"kind": "job", "id": "c"})
        mine.close(removed=False)
    assert list(abandoned("cluster")) == [({"kind": "job", "id": "c"},)]
