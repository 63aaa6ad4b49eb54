"""Samples from production, in the format of all samples, and their features."""

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from models.errors import InvalidInput
from models.job import Job
from models.metrics import SAMPLE_COLUMNS
from pipelines.stages.features import extract
from pipelines.store.digests import digest_bytes
from pipelines.store.workspace import Workspace, checked_key

FOLDER: Final = "production"
SUFFIX: Final = ".parquet"


@dataclass(frozen=True)
class ProductionSamples:
    """The newest files of production samples: URI -> SHA-256."""

    files: Mapping[str, str]


def production_key(job: str) -> str:
    """Workspace key of the folder that holds a job's production samples."""
    return f"{FOLDER}/{job}"


def jobs_with_samples(workspace: Workspace) -> list[str]:
    """Jobs with production samples in the workspace, by name."""
    return sorted({key.split("/")[1] for key in workspace.list(FOLDER) if key.endswith(SUFFIX) and key.count("/") > 1})


def find_samples(workspace: Workspace, job: str, samples: str | None, windows: int) -> ProductionSamples:
    """The newest `windows` Parquet files, by name.

    Args:
        samples: a file or folder, by its path, its URL, or its key below `production/`; None: all samples of the job in
            the workspace.

    Raises:
        InvalidInput: there are none, or a file lacks columns.
    """
    place, key = _located(workspace, samples or production_key(job))
    keys = [key] if key and place.exists(key) else sorted(k for k in place.list(key) if k.endswith(SUFFIX))
    if not keys:
        raise InvalidInput(
            f"there are no samples in {place.uri(key) if key else place.url}; put Parquet files with the columns of samples "
            f"there, or name another file or folder"
        )
    newest = keys[-windows:]
    found = {place.uri(k): place.read_bytes(k) for k in newest}
    for uri, content in found.items():
        _check_columns(uri, content)
    return ProductionSamples({uri: digest_bytes(content) for uri, content in found.items()})


def _check_columns(uri: str, content: bytes) -> None:
    """What is no Parquet file is left to Spark, which says so; missing columns it would take for nulls."""
    try:
        names = pq.read_schema(pa.BufferReader(content)).names
    except pa.ArrowInvalid:
        return
    in_path = {"job", "run"} if "/job=" in uri else set()
    missing = [c.name for c in SAMPLE_COLUMNS if not c.nullable and c.name not in {*names, *in_path}]
    if missing:
        raise InvalidInput(
            f"{uri} lacks columns of samples: {', '.join(missing)}; write them, or name another file or folder"
        )


def _located(workspace: Workspace, samples: str) -> tuple[Workspace, str]:
    """The store that holds the samples, and their key in it; an empty key is the whole store."""
    if samples.split("/")[0] == FOLDER:
        return workspace, checked_key(samples.rstrip("/"))
    folder, name = posixpath.split(samples) if samples.endswith(SUFFIX) else (samples, "")
    try:
        return Workspace(folder or "."), checked_key(name) if name else ""
    except InvalidInput as error:
        raise InvalidInput(f"samples must be in a file named *{SUFFIX}, or a folder of such files: {error}") from None


def production_features(job: Job, samples: ProductionSamples) -> list[dict[str, Any]]:
    """Features of each window and operator, extracted by Spark as for every run.

    Raises:
        InvalidInput: they are of another job, or have no rows of the phase 'observe'.
        SluiceError: Spark did not start, or refused the samples.
    """
    rows: Sequence[dict[str, Any]] = extract(list(samples.files)).to_pylist()
    if not rows:
        raise InvalidInput(
            "the samples hold no row of the phase 'observe', so there are no features; give samples of production with "
            "this value in the column 'phase'"
        )
    others = sorted({row["job"] for row in rows} - {job.name})
    if others:
        raise InvalidInput(
            f"the samples must be of the job {job.name!r}, but some are of {', '.join(map(repr, others[:5]))}; leave those out"
        )
    return list(rows)
