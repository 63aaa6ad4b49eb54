"""Samples from production, in the format of all samples, and their features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from models.errors import InvalidInput
from models.job import Job
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
        InvalidInput: there are none.
    """
    place, key = _located(workspace, samples or production_key(job))
    keys = [key] if key and place.exists(key) else sorted(k for k in place.list(key) if k.endswith(SUFFIX))
    if not keys:
        raise InvalidInput(
            f"there are no samples in {place.uri(key) if key else place.url}; put Parquet files with the columns of samples "
            f"there, or name another file or folder"
        )
    newest = keys[-windows:]
    return ProductionSamples({place.uri(k): digest_bytes(place.read_bytes(k)) for k in newest})


def _located(workspace: Workspace, samples: str) -> tuple[Workspace, str]:
    """The store that holds the samples, and their key in it; an empty key is the whole store."""
    if samples.split("/")[0] == FOLDER:
        return workspace, checked_key(samples.rstrip("/"))
    if samples.endswith(SUFFIX):
        folder, _, name = samples.rpartition("/")
        return Workspace(folder or "."), checked_key(name)
    return Workspace(samples), ""


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
