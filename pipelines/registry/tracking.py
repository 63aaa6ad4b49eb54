"""Where runs are tracked: MLflow on SQLite in the workspace, or the server that MLFLOW_TRACKING_URI names, by its address or by
`connection:NAME`.

MLflow takes about 3 s to import, so nothing here imports it before a store is opened. Only the explicit client is used,
never MLflow's ambient "current" run or tracking URI, so that several workspaces can be open in one process.
"""

import logging
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit, urlunsplit

from flink_client.address import connection_name
from models.errors import InvalidInput, SluiceError
from pipelines.store.workspace import Workspace

if TYPE_CHECKING:
    from mlflow import MlflowClient

TRACKING_VARIABLE: Final = "MLFLOW_TRACKING_URI"
FOLDER: Final = "mlflow"
DATABASE: Final = "mlflow.db"
ARTIFACTS: Final = "artifacts"

_SETTINGS: Final = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    # MLflow reads a model's list of trusted types from the model itself, so its own loaders can be made to run code,
    # skops or not. Sluice loads models with an empty list (`pipelines.registry.models`) and switches MLflow's loaders off.
    "MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "false",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    # MLflow's seven retries take four minutes to say that a server is not there.
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
}
_LOG_LEVELS: Final = {
    "mlflow": logging.WARNING,
    "alembic": logging.WARNING,
    "mlflow.store.db.utils": logging.WARNING,
    # It warns of every model that is saved in an environment without pip, which uv's are.
    "mlflow.utils.environment": logging.ERROR,
}


_migrating = threading.Lock()
"""Alembic keeps its migration in a global variable, so two threads cannot migrate at once."""

ENVIRONMENT: Final = threading.RLock()
"""Held while MLflow's evaluation has changed TRACKING_VARIABLE (`pipelines.registry.review.ambient`)."""


@dataclass(frozen=True)
class Tracking:
    """An MLflow tracking store with its model registry."""

    uri: str
    artifacts: str | None
    """URI under which new experiments keep their artifacts; None leaves it to the server."""

    @cached_property
    def client(self) -> "MlflowClient":
        return _client(self.uri)

    def experiment(self, job: str) -> str:
        """Id of the job's experiment, which is made if absent and restored if deleted."""
        from mlflow.entities import LifecycleStage
        from mlflow.exceptions import MlflowException

        name = experiment_name(job)
        location = None if self.artifacts is None else f"{self.artifacts}/{job}"
        found = self.client.get_experiment_by_name(name)
        if found is None:
            try:
                return self.client.create_experiment(name, artifact_location=location)
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise
        if found.lifecycle_stage == LifecycleStage.DELETED:
            self.client.restore_experiment(found.experiment_id)
        if location is not None and found.artifact_location != location:
            raise SluiceError(
                f"MLflow's experiment {name!r} keeps its artifacts at {found.artifact_location}, but the workspace's are "
                f"at {location}; MLflow cannot move them: move the workspace back, or delete its folder {FOLDER!r} to "
                "start again"
            )
        return found.experiment_id


def experiment_name(job: str) -> str:
    return f"sluice/{job}"


def open_tracking(workspace: Workspace) -> Tracking:
    """The store that MLFLOW_TRACKING_URI names, or else the workspace's own, which is made if absent.

    Raises:
        InvalidInput: the workspace is not local, and no server is named; or the connection that is named cannot be used.
    """
    uri = named_store()
    if uri and connection_name(uri) is not None:
        return tracking_by(uri)
    if uri:
        is_server = urlsplit(uri).scheme in {"http", "https"}
        return Tracking(uri, None if is_server else workspace.uri(FOLDER, ARTIFACTS))
    try:
        folder = workspace.local_folder(FOLDER)
    except InvalidInput:
        raise
    except SluiceError:
        raise InvalidInput(
            f"the workspace {workspace.url} is not a local folder, so MLflow cannot keep its database in it; set "
            f"{TRACKING_VARIABLE} to the address of an MLflow server"
        ) from None
    create_database(folder / DATABASE)
    return Tracking(f"sqlite:///{folder / DATABASE}", (folder / ARTIFACTS).as_uri())


def named_store() -> str | None:
    """What MLFLOW_TRACKING_URI holds: a URI of MLflow, or `connection:NAME`."""
    with ENVIRONMENT:
        return os.environ.get(TRACKING_VARIABLE)


def tracking_by(address: str) -> Tracking:
    """The server of `connection:NAME`; MLflow's client in this process shows its credentials from then on.

    Raises:
        InvalidInput: there is no such connection, or MLflow's client cannot use it.
    """
    from pipelines.registry.access import let_in, mlflow_access

    access = mlflow_access(address)
    configure_mlflow()
    let_in(access)
    return Tracking(access.url, None)


@contextmanager
def mlflow_errors(tracking: Tracking) -> Iterator[None]:
    """Turn what MLflow raises into one SluiceError that names the store."""
    configure_mlflow()
    from mlflow.exceptions import MlflowException

    from pipelines.registry.access import without_mlflows_secrets

    try:
        yield
    except MlflowException as error:
        shown = without_password(tracking.uri)
        message = without_mlflows_secrets(str(error)).replace(tracking.uri, shown).splitlines()[0][:300]
        name = connection_name(named_store() or "")
        what = f"check that it is there and that {TRACKING_VARIABLE} is right"
        if name is not None:
            what = f"check the connection {name}, which {TRACKING_VARIABLE} names"
        raise SluiceError(f"MLflow at {shown} failed: {message}; {what}") from None


def create_database(path: Path) -> None:
    """Make MLflow's database, unless it is there.

    The migrations take about 2 s and are not transactional. They run on a file beside it, which gets its name when it
    is whole: a process that is killed leaves no half-migrated database, and of several at once one wins.
    """
    with _migrating:
        if not path.exists():
            _migrate(path)


def configure_mlflow() -> None:
    """Import MLflow with telemetry, pickles and chatter off; what the environment says already stays."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    import mlflow  # noqa: F401  (it sets the levels of its loggers when it is imported)

    for logger, level in _LOG_LEVELS.items():
        logging.getLogger(logger).setLevel(level)


def without_password(uri: str) -> str:
    """The URI with the user's name and password left out."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def _migrate(path: Path) -> None:
    configure_mlflow()
    from mlflow.store.db.utils import _initialize_tables, create_sqlalchemy_engine

    unfinished = path.with_name(f".tmp-{secrets.token_hex(8)}.db")
    try:
        engine = create_sqlalchemy_engine(f"sqlite:///{unfinished}")  # type: ignore[no-untyped-call]
        _initialize_tables(engine)  # type: ignore[no-untyped-call]
        engine.dispose()
        os.link(unfinished, path)
    except FileExistsError:
        pass  # another process was faster
    finally:
        unfinished.unlink(missing_ok=True)


def _client(uri: str) -> "MlflowClient":
    configure_mlflow()
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri, registry_uri=uri)
