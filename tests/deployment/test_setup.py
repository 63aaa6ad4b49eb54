"""The set-up script: its errors when something is missing, and that a second run changes nothing."""

import shutil
import stat
import subprocess
from pathlib import Path

import pytest

TOOLS = ("bash", "cat", "dirname", "env", "mkdir", "sed", "sha256sum", "tail")


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A folder with the set-up script alone, and a `bin` with the few tools it needs."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(root / ".ci" / "setup", tmp_path / ".ci" / "setup")
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool))
    return tmp_path


def _program(checkout: Path, name: str, script: str) -> None:
    path = checkout / "bin" / name
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


def _set_up(checkout: Path) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(checkout / "bin"), "HOME": str(checkout)}
    return subprocess.run([checkout / ".ci" / "setup"], capture_output=True, text=True, env=environment)


def test_without_a_supported_python_it_says_so_in_one_line_with_the_fix(checkout: Path) -> None:
    _program(checkout, "python3", "exit 1")  # some other version
    done = _set_up(checkout)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Python 3.11, 3.12 or 3.13 is needed" in done.stderr and "make PYTHON=" in done.stderr


def test_a_python_without_ensurepip_names_the_package_that_has_it(checkout: Path) -> None:
    answers = '*ensurepip*) exit 1;; *-venv*) echo python3.12-venv;; *print*) echo "$0";;'
    _program(checkout, "python3.12", f'case "$2" in {answers} esac')
    done = _set_up(checkout)
    assert done.returncode == 1
    assert "lacks the module ensurepip" in done.stderr and "apt-get install python3.12-venv" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path(".venv/.made-from").exists(), reason="this environment was not made by make")
def test_a_second_set_up_changes_nothing_and_says_nothing(root: Path) -> None:
    before = (root / ".venv" / ".made-from").stat().st_mtime_ns
    done = subprocess.run(
        ["make", "--no-print-directory", "setup"], cwd=root, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")
    assert stat.S_IMODE((root / ".sluice" / "airflow").stat().st_mode) == 0o700, "it holds passwords and the database"
    assert (root / ".venv" / ".made-from").stat().st_mtime_ns == before
