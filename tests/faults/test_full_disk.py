"""A full disk: the run stops with the remedy, keeps its measurements, and resumes when there is room."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from models.errors import SluiceError
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.stages.explore import explore
from pipelines.stages.profile import profile
from pipelines.store.workspace import Workspace

SMALL = {"job": "wordcount", "rate": 30_000.0, "max_task_slots": 12, "max_measurements": 3, "run": "r"}
ROOM_KIB = 160
"""Enough for the profile and a few measurements."""


def _mount(folder: Path, *options: str) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", ",".join(options), "none", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of ROOM_KIB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not _mount(folder, f"size={ROOM_KIB}k"):
        pytest.skip("file systems can be mounted by root only")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def _run(folder: Path) -> PipelineRun:
    return PipelineRun(PlanRequest.model_validate(SMALL), Workspace(folder))


def _kept(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_run_on_a_full_disk_keeps_what_it_measured_and_goes_on_when_there_is_room(small_disk: Path) -> None:
    run = _run(small_disk)
    with pytest.raises(SluiceError) as stopped:
        run.start()
        profile(run)
        explore(run)
    assert "no room is left" in str(stopped.value) and "Free some space" in str(stopped.value)

    kept = _kept(small_disk)
    assert any("samples.parquet" in name for name in kept)
    for name, content in kept.items():  # no partial file has a name that is read
        assert Path(name).name[0] != "."
        if name.endswith(".json"):
            json.loads(content)
        else:
            assert pq.read_table(small_disk / name).num_rows > 0

    assert _mount(small_disk, "remount", "size=64m")
    explore(_run(small_disk))
    after = _kept(small_disk)
    assert kept.items() <= after.items()
    assert len(list(small_disk.glob("runs/wordcount/r/observations/*.json"))) >= 7  # four corners and three more
