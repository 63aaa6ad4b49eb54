"""A server that answers as a Flink, and a job of the catalogue that runs there."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from flink.observed import JOB_ID, ObservedFlink
from flink_client.rest.client import FlinkRest
from pipelines.observe import watching
from pipelines.observe.observation import job_file_text, observe_job
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace

JOB = "fraud"


@pytest.fixture
def flink() -> Iterator[ObservedFlink]:
    with ObservedFlink() as server:
        yield server


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


@pytest.fixture(scope="session")
def seen_file(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The file of the job as `--write-job` writes it."""
    with ObservedFlink() as server, FlinkRest(server.url) as rest, pytest.MonkeyPatch.context() as patch:
        patch.setattr(watching, "LEAST_PAUSE_S", 0.05)
        place = Workspace(tmp_path_factory.mktemp("seen"))
        text = job_file_text(observe_job(rest, JOB_ID, 0.5, place, Quiet()).as_job())
    document: dict[str, Any] = yaml.safe_load(text)
    return document | {"name": JOB}


@pytest.fixture
def says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flink: ObservedFlink, seen_file: dict[str, Any]
) -> Callable[..., Path]:
    """Writes the file of a job of the catalogue, with what is to be observed of it."""
    folder = tmp_path / "catalogue"
    for kind in ("jobs", "clusters"):
        (folder / kind).mkdir(parents=True)
    monkeypatch.setenv("SLUICE_CATALOGUE", str(folder))

    def write(job: str = JOB, file: dict[str, Any] | None = None, **observe: Any) -> Path:
        rules = {"flink": flink.url, "job": "Fraud detection", "every_s": 20.0, "window_s": 100.0, **observe}
        operations = observe.get("operations", {"observe": rules})
        path = folder / "jobs" / f"{job}.yaml"
        path.write_text(yaml.safe_dump((file or seen_file) | {"name": job, "operations": operations}))
        return path

    return write
