"""The storage of a workspace: a local folder, or whatever fsspec reaches.

A reader sees the old content or the new one, never a part. The local store guarantees that by writing a temporary file
beside the target, flushing it to the disk, and renaming it (or linking it, if the target must not exist yet; linking is
atomic on NFS too, while renaming is never exclusive). Object stores guarantee it themselves: a put is atomic, and a
conditional put is exclusive. fsspec's own local back end does neither: it opens the target and writes into it.
"""

import errno
import os
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from models.errors import InvalidInput, SluiceError

if TYPE_CHECKING:
    from fsspec.spec import AbstractFileSystem

TEMPORARY_PREFIX = ".tmp-"
"""Prefix of unfinished files; no key begins with a dot, so a killed writer's leftovers are never read."""


class NoRoom(SluiceError, OSError):
    """The disk or a quota is full; nothing was changed."""

    def __init__(self, code: int, target: Path) -> None:
        super().__init__(code, os.strerror(code))
        self._target = target

    def __str__(self) -> str:
        return (
            f"{self._target} could not be written, since no room is left ({self.strerror}); stored files are "
            "intact. Free some space or move the workspace, then repeat the command, which resumes from there"
        )


class Store(Protocol):
    """Files by relative path. Paths are checked by the caller."""

    def uri(self, path: str) -> str: ...

    def read(self, path: str) -> bytes:
        """Raises FileNotFoundError."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write or replace, atomically."""
        ...

    def create(self, path: str, content: bytes) -> None:
        """Create atomically; raises FileExistsError if the path exists."""
        ...

    def exists(self, path: str) -> bool: ...

    def files(self, folder: str) -> list[str]:
        """Paths of all files below `folder`; empty if the folder does not exist."""
        ...

    def delete(self, path: str) -> None:
        """Remove the file if it exists."""
        ...


class LocalStore:
    """A folder of this machine, or one that several machines share."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def uri(self, path: str) -> str:
        return f"file://{self.root / path}"

    def read(self, path: str) -> bytes:
        return self._at(path).read_bytes()

    def write(self, path: str, content: bytes) -> None:
        target = self._at(path)
        with _finished_beside(target, content) as temporary:
            temporary.replace(target)

    def create(self, path: str, content: bytes) -> None:
        target = self._at(path)
        with _finished_beside(target, content) as temporary:
            _link(temporary, target, self.uri(path))

    def exists(self, path: str) -> bool:
        return (self.root / path).is_file()

    def files(self, folder: str) -> list[str]:
        start = str(self.root / folder)
        below = len(str(self.root).rstrip("/")) + 1
        return [f"{where}/{name}"[below:] for where, _, names in os.walk(start) for name in names]

    def delete(self, path: str) -> None:
        self._at(path).unlink(missing_ok=True)

    def _at(self, path: str) -> Path:
        """The file of a path, which must be inside the folder even if the path contains links."""
        target, root = self.root / path, str(self.root)
        # Of text: listings of many jobs spend most of their time here.
        leads_to = os.path.realpath(target)
        if leads_to != root and not leads_to.startswith(root.rstrip("/") + "/"):
            raise SluiceError(
                f"{target} leads to {leads_to}, outside the workspace; remove the link, or name the folder that "
                "the files are really in as the workspace"
            )
        return target


@contextmanager
def _finished_beside(target: Path, content: bytes) -> Iterator[Path]:
    """A temporary file in the target's folder, complete and on the disk; the folder's entry is flushed afterwards."""
    temporary = target.with_name(f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}")
    try:
        with room_needed(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
    _flush_folder(target.parent)


@contextmanager
def room_needed(target: Path) -> Iterator[None]:
    """Raise NoRoom if the disk or a quota is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise NoRoom(error.errno, target) from None


def _link(temporary: Path, target: Path, uri: str) -> None:
    try:
        target.hardlink_to(temporary)
    except FileExistsError:
        # An NFS server that executes the request twice reports our own link as existing.
        if not target.samefile(temporary):
            raise FileExistsError(f"{uri} exists") from None
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS):
            raise
        raise SluiceError(
            f"the file system of {target.parent} cannot make hard links ({error.strerror}), so two writers could make "
            f"the same file; put the workspace on one that can"
        ) from None


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems refuse; the rename stands
            raise
    finally:
        os.close(descriptor)


class FsspecStore:
    """An object store, or memory, through fsspec."""

    _creating = threading.Lock()

    def __init__(self, files: "AbstractFileSystem", root: str) -> None:
        self._files, self._root = files, root.rstrip("/")

    def uri(self, path: str) -> str:
        return str(self._files.unstrip_protocol(self._at(path).strip("/")))

    def read(self, path: str) -> bytes:
        return bytes(self._files.cat_file(self._at(path)))

    def write(self, path: str, content: bytes) -> None:
        self._files.pipe_file(self._at(path), content)

    def create(self, path: str, content: bytes) -> None:
        if not _creates_exclusively(self._files):
            raise SluiceError(
                f"{self.uri(path)} must be created by one writer only, which the back end "
                f"{type(self._files).__name__} cannot promise; use a local or mounted folder, S3, GCS or Azure Blob"
            )
        with self._creating:  # memory checks and writes in two steps
            try:
                self._files.pipe_file(self._at(path), content, mode="create")
            except FileExistsError:
                raise FileExistsError(f"{self.uri(path)} exists") from None

    def exists(self, path: str) -> bool:
        return bool(self._files.isfile(self._at(path)))

    def files(self, folder: str) -> list[str]:
        self._files.invalidate_cache()
        start = self._at(folder).rstrip("/") + "/"
        names = [str(name) for name in self._files.find(self._at(folder))]
        return [name[len(self._root) + 1 :] for name in names if name.startswith(start)]

    def delete(self, path: str) -> None:
        if self.exists(path):
            self._files.rm_file(self._at(path))

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"


def _creates_exclusively(files: "AbstractFileSystem") -> bool:
    """Whether the back end has its own exclusive create; the inherited one checks first and writes then."""
    from fsspec.implementations.memory import MemoryFileSystem

    if isinstance(files, MemoryFileSystem):
        return True
    put = getattr(type(files), "_pipe_file", None)
    return put is not None and "mode" in put.__code__.co_varnames


def open_store(url: str) -> Store:
    """The store behind an fsspec URL or a local path.

    Raises:
        InvalidInput: the protocol is not known, or its package is not installed.
    """
    if "://" not in url and "::" not in url:
        return LocalStore(_folder(url))
    import fsspec

    try:
        files, root = fsspec.core.url_to_fs(url, use_listings_cache=False)
    except (ValueError, ImportError) as error:
        raise InvalidInput(
            f"the workspace {url!r} cannot be opened: {error}; give a folder, or a URL such as s3://bucket/folder "
            f"whose fsspec package is installed"
        ) from None
    if _is_local(files):
        return LocalStore(_folder(root))
    return FsspecStore(files, root)


def _is_local(files: Any) -> bool:
    protocol = files.protocol
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)


def _folder(root: str) -> Path:
    folder = Path(root).expanduser().resolve()
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"a workspace must be a folder, but {folder} is a file; name another one")
    return folder
