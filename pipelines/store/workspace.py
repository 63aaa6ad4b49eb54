"""The workspace: all inputs and outputs of stages, by key, written atomically.

A key is a relative path such as `runs/q5/3f2a/profile.json`. JSON artifacts are pydantic models; tables are Parquet.
"""

import io
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel

from models.errors import InvalidInput, SluiceError
from models.schema import SCHEMA_VERSION, Format
from pipelines.inputs.parsing.files import validate_as
from pipelines.store.backends import LocalStore, open_store
from pipelines.store.digests import digest
from pipelines.store.locks import held

if TYPE_CHECKING:
    import pyarrow as pa

URL_VARIABLE = "SLUICE_WORKSPACE"
DEFAULT_URL = ".sluice/workspace"

Model = TypeVar("Model", bound=BaseModel)
_PART = re.compile(r"[A-Za-z0-9_=+@-][A-Za-z0-9_=+@.-]{0,199}")
_logger = logging.getLogger(__name__)


class Missing(SluiceError, FileNotFoundError):
    """The artifact does not exist."""


class Damaged(SluiceError):
    """The artifact exists, but is truncated, was changed, or has another format."""


class Artifact(Format):
    """The content that `Workspace.once` stores: an output with the digests of its inputs."""

    schema_version: Literal[1] = SCHEMA_VERSION
    inputs: dict[str, str]
    digest: str
    output: Any


class Workspace:
    """A folder, or a place that fsspec reaches, holding artifacts by key.

    Args:
        url: local folder or fsspec URL; without one, the environment variable SLUICE_WORKSPACE, else
            `.sluice/workspace` in the current folder.

    Raises:
        InvalidInput: the URL's protocol is not known, or the folder is a file.
    """

    def __init__(self, url: str | Path | None = None) -> None:
        self._store = open_store(str(url or os.environ.get(URL_VARIABLE) or DEFAULT_URL))

    @property
    def url(self) -> str:
        """The absolute URL, which opens the same workspace from any folder and process."""
        return self._store.uri("")

    def uri(self, *parts: str) -> str:
        """URI of a key, or of a folder of keys."""
        return self._store.uri(checked_key("/".join(parts))) if parts else self.url

    def local_folder(self, *parts: str) -> Path:
        """A folder for tools that need a real one; made if absent.

        Raises:
            SluiceError: the workspace is not local.
        """
        if not isinstance(self._store, LocalStore):
            raise SluiceError(f"a local folder is needed, but the workspace is {self.url}; use a workspace on disk")
        folder = self._store.root / checked_key("/".join(parts)) if parts else self._store.root
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextmanager
    def lock(self, key: str, say: Callable[[str], None]) -> Iterator[None]:
        """Hold a key while the block runs, after waiting for the process that holds it; `locks` says what that promises.

        Args:
            say: called once, with a remark for people, if there is something to wait for.
        """
        with held(self._store, checked_key(key), say):
            yield

    def exists(self, key: str) -> bool:
        """Whether a file has this key; folders do not count."""
        return self._store.exists(checked_key(key))

    def list(self, prefix: str = "") -> list[str]:
        """Sorted keys of all files in the folder `prefix`, at any depth.

        Files whose names are not keys are left out, for example unfinished files of killed writers.
        """
        folder = prefix.rstrip("/")
        return sorted(filter(is_key, self._store.files(checked_key(folder) if folder else "")))

    def delete(self, key: str) -> None:
        """Remove the file, if it exists."""
        self._store.delete(checked_key(key))

    def read_bytes(self, key: str) -> bytes:
        """Raises Missing."""
        try:
            return self._store.read(checked_key(key))
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise Missing(f"{self.uri(key)} does not exist; run the stage that makes it") from None

    def write_bytes(self, key: str, content: bytes) -> None:
        """Write or replace, atomically: on any failure the old content stays."""
        self._store.write(checked_key(key), content)

    def create_bytes(self, key: str, content: bytes) -> None:
        """Create an artifact that must not exist yet; of several concurrent writers, exactly one succeeds.

        Raises:
            FileExistsError: the key exists.
            SluiceError: the store cannot guarantee that.
        """
        self._store.create(checked_key(key), content)

    def read(self, key: str, model: type[Model]) -> Model:
        """Read a JSON artifact.

        Raises:
            Missing: it does not exist.
            Damaged: it is not JSON, or not valid.
        """
        try:
            return validate_as(self.read_json(key), model, origin=self.uri(key))
        except InvalidInput as error:
            raise Damaged(str(error)) from None

    def read_json(self, key: str) -> Any:
        """Parse a JSON artifact. Raises Missing, or Damaged if it is truncated or not JSON."""
        content = self.read_bytes(key)
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Damaged(f"{self.uri(key)} is damaged: {error}") from None

    def write(self, key: str, document: BaseModel) -> None:
        """Write a JSON artifact. Raises ValueError if it holds infinity or NaN."""
        self.write_bytes(key, to_json(document))

    def read_table(self, key: str) -> "pa.Table":
        """Read a Parquet table. Raises Missing, or Damaged if it is truncated or not Parquet."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        content = self.read_bytes(key)
        try:
            return pq.read_table(pa.BufferReader(content))
        except (pa.ArrowException, OSError) as error:
            raise Damaged(f"{self.uri(key)} is damaged: {error}") from None

    def write_table(self, key: str, table: "pa.Table") -> None:
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        pq.write_table(table, buffer)
        self.write_bytes(key, buffer.getvalue())

    def once(
        self,
        key: str,
        inputs: Mapping[str, str],
        model: type[Model],
        make: Callable[[], Model],
        flaw: Callable[[Model], str | None] = lambda made: None,
    ) -> Model:
        """The stored artifact, if it was made from these inputs; otherwise the result of `make`, which is then stored.

        A stored artifact that is damaged, or whose digest does not match its content, is reported as a warning in the
        log and made again.

        Args:
            inputs: digests of all inputs of `make`, by name.
            flaw: the fault of a file that the stored artifact refers to; None if it is intact.
        """
        stored = self._made_before(key, inputs, model) if self.exists(key) else None
        if stored is not None:
            if (wrong := flaw(stored)) is None:
                return stored
            _logger.warning("%s; making %s again", wrong, self.uri(key))
        made = make()
        output = made.model_dump(mode="json", by_alias=True)
        self.write(key, Artifact(inputs=dict(inputs), digest=digest(output), output=output))
        return made

    def _made_before(self, key: str, inputs: Mapping[str, str], model: type[Model]) -> Model | None:
        try:
            artifact = self.read(key, Artifact)
            if artifact.inputs != dict(inputs):
                changed = sorted(n for n in {*artifact.inputs, *inputs} if artifact.inputs.get(n) != inputs.get(n))
                _logger.info("making %s again, since these inputs changed: %s", self.uri(key), ", ".join(changed))
                return None
            return self._verified(key, artifact, model)
        except Damaged as error:
            _logger.warning("%s; making it again", error)
            return None

    def read_output(self, key: str, model: type[Model]) -> Model:
        """The output stored by `once`. Raises Missing, or Damaged if its digest does not match its content."""
        return self._verified(key, self.read(key, Artifact), model)

    def output_from(self, key: str, inputs: Mapping[str, str], model: type[Model]) -> Model | None:
        """The output stored by `once`; None if there is none from these inputs, or it is damaged. Nothing is made."""
        try:
            artifact = self.read(key, Artifact)
            return self._verified(key, artifact, model) if artifact.inputs == dict(inputs) else None
        except (Missing, Damaged):
            return None

    def _verified(self, key: str, artifact: Artifact, model: type[Model]) -> Model:
        if digest(artifact.output) != artifact.digest:
            raise Damaged(f"{self.uri(key)} was changed after it was made: its digest does not match its content")
        try:
            return validate_as(artifact.output, model, origin=self.uri(key))
        except InvalidInput as error:
            raise Damaged(str(error)) from None


def to_json(document: BaseModel) -> bytes:
    """The text of a JSON artifact: indented, one line feed at the end, UTF-8."""
    data = document.model_dump(mode="json", by_alias=True)
    return (json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def is_key(text: str) -> bool:
    return all(_PART.fullmatch(part) for part in text.split("/"))


def checked_key(text: str) -> str:
    """The key itself, if it is one.

    Raises:
        InvalidInput: it is absolute, leaves the workspace, or holds other characters than keys may.
    """
    if is_key(text):
        return text
    raise InvalidInput(
        f"a key must be a relative path of letters, digits and _ = + @ . - whose parts do not begin with a dot, "
        f"but got {text[:80]!r}"
    )
