"""The file of a model: saved with skops, with signature and input example, and loaded without running any of its code.

MLflow reads from a model's own description whether it is a pickle and which types to trust, so whoever can write the
model can make MLflow run code. Here neither is asked: the file is read by skops with an empty list of trusted types.
"""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from models.capacity.surrogates import Dataset, Surrogate, to_estimator
from models.errors import SluiceError
from pipelines.registry.tracking import Tracking
from pipelines.store.digests import digest_bytes

MODEL_FILE: Final = "model.skops"
REQUIREMENTS: Final = ("numpy", "pandas", "scikit-learn", "skops")
COEFFICIENT_TOLERANCE: Final = 1e-9
PREDICTION_TOLERANCE: Final = 1e-6
_CHECKED_AT: Final = {"memory_mb": [1024.0, 65536.0], "task_slots": [10.0, 1000.0]}


class ChangedModel(SluiceError):
    """The file is not the model that was registered."""


@dataclass(frozen=True)
class LoggedFile:
    """A model that MLflow keeps."""

    model_id: str
    source: str
    """URI of the folder that holds it."""
    digest: str
    """SHA-256 of the file MODEL_FILE in it."""


def log_model(
    tracking: Tracking, experiment_id: str, run_id: str, surrogate: Surrogate, dataset: Dataset
) -> LoggedFile:
    """Save the surrogate as a scikit-learn pipeline on the columns memory_mb (MiB) and task_slots, and upload it."""
    from mlflow.models.model import Model

    logged = tracking.client.create_logged_model(
        experiment_id, name="surrogate", source_run_id=run_id, params={"model": surrogate.name}, model_type="surrogate"
    )
    description = Model(
        artifact_path=logged.artifact_location, model_uuid=logged.model_id, run_id=run_id, model_id=logged.model_id
    )
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "model"
        _save(saved, surrogate, dataset, description)
        tracking.client.log_model_artifacts(logged.model_id, str(saved))
        digest = digest_bytes((saved / MODEL_FILE).read_bytes())
    tracking.client.finalize_logged_model(logged.model_id, "READY")
    return LoggedFile(logged.model_id, logged.artifact_location, digest)


def read_model_file(tracking: Tracking, source: str) -> bytes:
    """The bytes of MODEL_FILE in the folder `source`.

    Raises:
        SluiceError: it is not there.
    """
    from mlflow.artifacts import download_artifacts
    from mlflow.exceptions import MlflowException

    with tempfile.TemporaryDirectory() as folder:
        try:
            path = download_artifacts(f"{source}/{MODEL_FILE}", dst_path=folder, tracking_uri=tracking.uri)
            return Path(path).read_bytes()
        except (OSError, MlflowException) as error:
            raise SluiceError(
                f"the model file {source}/{MODEL_FILE} cannot be read; bring it back, or approve another version: {error}"
            ) from None


def verify(content: bytes, digest: str, surrogate: Surrogate) -> None:
    """Check that a model's file is the one that was registered, and that it is this surrogate.

    Raises:
        ChangedModel: its digest, its types, its coefficients or its predictions are others.
    """
    import pandas as pd

    if (found := digest_bytes(content)) != digest:
        raise ChangedModel(f"its file has the digest {found[:12]}..., and {digest[:12]}... was registered")
    estimator = _load(content)
    stored = [*estimator[-1].coef_, estimator[-1].intercept_]
    expected = [surrogate.memory, surrogate.slots, surrogate.intercept]
    if not np.allclose(stored, expected, rtol=COEFFICIENT_TOLERANCE, atol=0.0):
        raise ChangedModel(f"its file has the coefficients {stored}, and {expected} were selected")
    frame = pd.DataFrame(_CHECKED_AT)
    predicted = surrogate.predict(frame["memory_mb"].to_numpy(), frame["task_slots"].to_numpy())
    if not np.allclose(estimator.predict(frame), predicted, rtol=PREDICTION_TOLERANCE, atol=0.0):
        raise ChangedModel(f"its file does not predict what the surrogate {surrogate.name!r} does")


def _save(path: Path, surrogate: Surrogate, dataset: Dataset, description: Any) -> None:
    import mlflow.sklearn
    import pandas as pd
    from mlflow.models import infer_signature

    estimator = to_estimator(surrogate)
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
        raise ChangedModel(f"its file holds types that are not trusted: {error}") from None
