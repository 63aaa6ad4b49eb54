"""A calibration as files that the simulator reads: the job, the cluster and the machine."""

from pathlib import Path

import yaml
from pydantic import BaseModel

from models.errors import InvalidInput
from pipelines.calibration.request import Calibration
from pipelines.inputs.catalogue import SUFFIXES
from pipelines.store.workspace import Workspace, to_json


def checked_output(path: Path) -> Path:
    """Check that a calibration can be written to the path; return it.

    Raises:
        InvalidInput: it does not end like a job file, or its folder does not exist.
    """
    if path.suffix not in SUFFIXES:
        raise InvalidInput(f"--output must end in {', '.join(SUFFIXES)}, as job files do, but got {str(path)!r}")
    if not path.parent.is_dir():
        raise InvalidInput(f"the folder of --output must exist, but {path.parent} does not; make it first")
    return path


def write_files(calibration: Calibration, path: Path) -> list[Path]:
    """Write the job to `path`, and beside it the cluster (`NAME.cluster.yaml`) and the machine (`NAME.machine.yaml`).

    Each is written atomically, in the format of its ending. The job has no SQL: its figures are for the simulator.

    Returns:
        The paths written.
    """
    checked_output(path)
    documents: dict[Path, BaseModel] = {
        path: calibration.job.model_copy(update={"sql": None}),
        path.with_name(f"{path.stem}.cluster{path.suffix}"): calibration.cluster,
        path.with_name(f"{path.stem}.machine{path.suffix}"): calibration.machine,
    }
    for place, document in documents.items():
        content = to_json(document) if place.suffix == ".json" else _yaml(document)
        Workspace(place.parent.resolve()).write_bytes(place.name, content)
    return list(documents)


def _yaml(document: BaseModel) -> bytes:
    data = document.model_dump(mode="json", by_alias=True, exclude_none=True)
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120).encode()
