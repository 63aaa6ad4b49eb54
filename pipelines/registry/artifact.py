"""The files of a model: saved with signature and input example, and loaded without running any of their code.

`capacity.json` is the capacity model itself: laws, weights and curves, all that sizing needs. `model.skops` is its
central MST as a scikit-learn estimator, for whoever loads it from MLflow.

MLflow reads from a model's own description whether it is a pickle and which types to trust, so whoever can write the
model can make MLflow run code. Here neither is asked: the estimator is read by skops with an empty list of trusted
types.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from pydantic import ValidationError

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.errors import SluiceError
from pipelines.registry.estimator import KNOTS, to_estimator
from pipelines.registry.tracking import Tracking
from pipelines.store.digests import digest_bytes
from pipelines.store.workspace import to_json

MODEL_FILE: Final = "model.skops"
CAPACITY_FILE: Final = "capacity.json"
REQUIREMENTS: Final = ("numpy", "pandas", "scikit-learn", "skops")
PREDICTION_TOLERANCE: Final = 1e-6
_CHECKED_AT: Final = {"memory_mb": np.resize([1024.0, 65536.0], len(KNOTS)), "task_slots": KNOTS}


class ChangedModel(SluiceError):
    """A file is not what was registered."""


@dataclass(frozen=True)
class LoggedFiles:
    """A model that MLflow keeps."""

    model_id: str
    source: str
    """URI of the folder that holds it."""
    model_digest: str
    """SHA-256 of the file MODEL_FILE in it."""
    capacity_digest: str
    """SHA-256 of the file CAPACITY_FILE in it."""


@dataclass(frozen=True)
class ModelFiles:
    """What is in the files of a model."""

    model: bytes
    capacity: bytes


def log_model(
    tracking: Tracking, experiment_id: str, run_id: str, capacity: CapacityModel, dataset: Dataset
) -> LoggedFiles:
    """Save the model, and upload it."""
    from mlflow.models.model import Model

    logged = tracking.client.create_logged_model(
        experiment_id, name="capacity", source_run_id=run_id, params={"model": capacity.name}, model_type="capacity"
    )
    description = Model(
        artifact_path=logged.artifact_location, model_uuid=logged.model_id, run_id=run_id, model_id=logged.model_id
    )
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "model"
        _save(saved, capacity, dataset, description)
        (saved / CAPACITY_FILE).write_bytes(to_json(capacity))
        tracking.client.log_model_artifacts(logged.model_id, str(saved))
        digests = [digest_bytes((saved / name).read_bytes()) for name in (MODEL_FILE, CAPACITY_FILE)]
    tracking.client.finalize_logged_model(logged.model_id, "READY")
    return LoggedFiles(logged.model_id, logged.artifact_location, *digests)


def read_model_files(tracking: Tracking, source: str) -> ModelFiles:
    """The files in the folder `source`.

    Raises:
        SluiceError: one of them is not there.
    """
    return ModelFiles(_read(tracking, f"{source}/{MODEL_FILE}"), _read(tracking, f"{source}/{CAPACITY_FILE}"))


def _read(tracking: Tracking, uri: str) -> bytes:
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory() as folder:
        try:
            return Path(download_artifacts(uri, dst_path=folder, tracking_uri=tracking.uri)).read_bytes()
        except (OSError, MlflowException) as error:
            raise SluiceError(
                f"the model file {uri} cannot be read; bring it back, or approve another version: {error}"
            ) from None


def load_capacity(files: ModelFiles, digest: str) -> CapacityModel:
    """The capacity model in a model's files.

    Raises:
        ChangedModel: its digest is another, or it is none.
    """
    _check_digest(CAPACITY_FILE, files.capacity, digest)
    try:
        return CapacityModel.model_validate_json(files.capacity)
    except ValidationError as error:
        raise ChangedModel(f"its file {CAPACITY_FILE} holds no capacity model: {error.errors()[0]['msg']}") from None


def verify(content: bytes, digest: str, capacity: CapacityModel) -> None:
    """Check that a model's estimator is the one that was registered, and that it is this capacity model's.

    Raises:
        ChangedModel: its digest, its types or its predictions are others.
    """
    import pandas as pd

    _check_digest(MODEL_FILE, content, digest)
    estimator, frame = _load(content), pd.DataFrame(_CHECKED_AT)
    expected = to_estimator(capacity).predict(frame)
    if not np.allclose(estimator.predict(frame), expected, rtol=PREDICTION_TOLERANCE, atol=0.0):
        raise ChangedModel(f"its file {MODEL_FILE} does not predict what its capacity model does")


def _check_digest(name: str, content: bytes, digest: str) -> None:
    if (found := digest_bytes(content)) != digest:
        raise ChangedModel(f"its file {name} has the digest {found[:12]}..., and {digest[:12]}... was registered")


def _save(path: Path, capacity: CapacityModel, dataset: Dataset, description: Any) -> None:
    import mlflow.sklearn
    import pandas as pd
    from mlflow.models import infer_signature

    estimator = to_estimator(capacity)
    inputs = pd.DataFrame({"memory_mb": dataset.memory_mb, "task_slots": dataset.task_slots})
    mlflow.sklearn.save_model(
        estimator,
        path,
        mlflow_model=description,
        serialization_format=mlflow.sklearn.SERIALIZATION_FORMAT_SKOPS,
        signature=infer_signature(inputs, estimator.predict(inputs)),
        input_example=inputs.head(3),
        pip_requirements=_pinned_requirements(),
    )


def _pinned_requirements() -> list[str]:
    """Given explicitly: MLflow would import the model in a fresh process to find them, which takes 15 s."""
    from importlib.metadata import version

    return [f"{name}=={version(name)}" for name in REQUIREMENTS]


def _load(content: bytes) -> Any:
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    try:
        return skops.io.loads(content, trusted=[])
    except UntrustedTypesFoundException as error:
        raise ChangedModel(f"its file {MODEL_FILE} holds types that are not trusted: {error}") from None
