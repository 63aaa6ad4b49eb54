"""A FLINK_HOME of our own, from the Python package index.

`apache-flink-libraries` holds Flink's jars and plugins (of 1.20 as a source distribution, of 2.3 as a wheel), `apache-flink`
its scripts and default settings (a wheel). Both are only fetched and unpacked: nothing is installed, so PyFlink's
requirements do not matter. `python -m testbeds.flink.local.distribution [VERSION]` fetches a version ahead of time and checks
every file of it.
"""

import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import IO, Final

from models.errors import InvalidInput, SluiceError
from testbeds.local.cache import cache_folder, free_mb, made_once

Report = Callable[[str, float], None]
"""Called with the current step and its progress, 0-1."""

_MANIFEST: Final = "MANIFEST.json"
_SPACE_MB: Final = 900.0
_FOLDERS: Final = ("bin", "conf", "lib", "licenses", "opt", "plugins")
"""Folders of a wheel that belong to a FLINK_HOME."""
_ENDED_WITH: Final = 5
"""Lines of pip's output that an error shows."""


@dataclass(frozen=True)
class Release:
    """The packages that make up a FLINK_HOME, each as `name==version` with the SHA-256 of its archive."""

    version: str
    packages: tuple[tuple[str, str], ...]

    @property
    def line(self) -> str:
        """The version without its patch number: `1.20`."""
        return line_of(self.version)


def line_of(version: str) -> str:
    """A version of Flink without its patch number."""
    return ".".join(version.split(".")[:2])


FLINK_1_20: Final = Release(
    version="1.20.5",
    packages=(
        ("apache-flink-libraries==1.20.5", "e6aee62ea1a1fe7b32e28894ad079f3f1a50a372a4caac3df52405267f4228c8"),
        ("apache-flink==1.20.5", "6e8ec098a7c06ea34d01fd540e81d44703a90e3bda74052dcbcbb7db5253c10f"),
    ),
)
"""Long-term support."""
FLINK_2_3: Final = Release(
    version="2.3.0",
    packages=(
        ("apache-flink-libraries==2.3.0", "38ece876553286b3a285cf344c2d2038f8a7ca10da5df54d5107250386d64151"),
        ("apache-flink==2.3.0", "0e5f612704de1610b153e919c0564b62ad513cddfcf4960f5a021658cdf41a13"),
    ),
)
FLINK: Final = FLINK_1_20
"""The default."""
RELEASES: Final[Mapping[str, Release]] = MappingProxyType({one.line: one for one in (FLINK_1_20, FLINK_2_3)})
"""What Sluice measures on, by version without patch number. The kit is compiled for each of them."""


def release_of(version: str) -> Release:
    """The release of a version with or without patch number.

    Raises:
        InvalidInput: Sluice does not measure on it.
    """
    if (found := RELEASES.get(line_of(version))) is None:
        raise InvalidInput(f"a Flink that is measured on must run version {' or '.join(RELEASES)}, but got {version}")
    return found


def flink_home(report: Report = lambda what, share: None, release: Release = FLINK) -> Path:
    """The folder of Flink's distribution, fetched at the first call; later calls only check that it is complete.

    Raises:
        SluiceError: it could not be fetched (no network, not in the package index) or unpacked (disk full).
    """
    folder = cache_folder() / f"flink-{release.version}"

    def make(made: Path) -> None:
        if free_mb(made) < _SPACE_MB:
            raise SluiceError(
                f"Flink needs {_SPACE_MB:g} MiB in {folder.parent}, but {free_mb(made):.0f} are free; free some space, "
                f"or name another folder by the environment variable SLUICE_CACHE"
            )
        downloads = cache_folder() / "downloads"
        downloads.mkdir(exist_ok=True)
        archives = _fetched(release, downloads, report)
        report("unpacking Flink", 0.0)
        for archive in archives:
            _unpack(archive, made)
        _write_manifest(made)
        for archive in archives:
            archive.unlink()

    return made_once(folder, make, _is_whole)


def damaged_files(home: Path) -> list[str]:
    """Files of a FLINK_HOME that differ from the unpacked ones."""
    listed = json.loads((home / _MANIFEST).read_text(encoding="utf-8"))
    return [name for name, (_, digest) in listed.items() if _sha256(home / name) != digest]


def _is_whole(home: Path) -> bool:
    """Whether every unpacked file exists with its size; `damaged_files` compares contents."""
    try:
        listed = json.loads((home / _MANIFEST).read_text(encoding="utf-8"))
        return all((home / name).stat().st_size == size for name, (size, _) in listed.items())
    except (OSError, ValueError):
        return False


def _fetched(release: Release, downloads: Path, report: Report) -> list[Path]:
    """The archives; complete ones from an earlier, interrupted call are not fetched again."""
    there = {_sha256(path): path for path in downloads.iterdir() if path.is_file()}
    missing = [package for package in release.packages if package[1] not in there]
    if missing:
        _pip_download(missing, downloads, report)
        there = {_sha256(path): path for path in downloads.iterdir() if path.is_file()}
    return [there[digest] for _, digest in release.packages]


def _pip_download(packages: list[tuple[str, str]], downloads: Path, report: Report) -> None:
    """Fetch with pip, so that the user's index, proxy and certificates are used; it checks the digests, too.

    The wheel is requested for a fixed platform: the files used are the same in all of them.
    """
    wanted = downloads / "wanted.txt"
    wanted.write_text("".join(f"{name} --hash=sha256:{digest}\n" for name, digest in packages), encoding="utf-8")
    command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"]
    command += [
        "--progress-bar",
        "raw",
        "--resume-retries",
        "5",
        "--dest",
        str(downloads),
        "--requirement",
        str(wanted),
    ]
    command += ["--platform", "manylinux2014_x86_64", "--python-version", "3.11", "--implementation", "cp"]
    ended_with: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as pip:
        assert pip.stdout is not None
        for line in pip.stdout:
            words = line.split()
            if words[:1] == ["Progress"]:
                report("downloading Flink", int(words[1]) / max(1, int(words[3])))
            elif words:
                ended_with = [*ended_with, line.strip()][-_ENDED_WITH:]
    wanted.unlink()
    if pip.returncode != 0:
        raise SluiceError(
            f"Flink could not be fetched ({', '.join(name for name, _ in packages)}); check the network and pip's "
            f"settings (index, proxy, certificates), then call again. pip said: {' '.join(ended_with)}"
        )


def _unpack(archive: Path, home: Path) -> None:
    """Take `<package>/deps/*` of a source distribution, and the folders of a FLINK_HOME in `pyflink` of a wheel."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for member in wheel.infolist():
                place = PurePosixPath(member.filename)
                is_file = len(place.parts) > 2 and not member.is_dir()
                if is_file and place.parts[0] == "pyflink" and place.parts[1] in _FOLDERS:
                    _write(home, place.relative_to("pyflink"), wheel.open(member))
        return
    with tarfile.open(archive) as package:
        for entry in package:
            place = PurePosixPath(entry.name)
            if entry.isfile() and place.parts[1:2] == ("deps",) and (content := package.extractfile(entry)):
                _write(home, PurePosixPath(*place.parts[2:]), content)


def _write(home: Path, place: PurePosixPath, content: IO[bytes]) -> None:
    if ".." in place.parts:
        raise SluiceError(f"the package of Flink holds a file outside its folder ({place}); it was not unpacked")
    path = home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    with content, path.open("wb") as file:
        while chunk := content.read(1 << 20):
            file.write(chunk)
    if place.parts[0] == "bin":
        path.chmod(0o755)


def _write_manifest(home: Path) -> None:
    listed = {name: ((home / name).stat().st_size, _sha256(home / name)) for name in sorted(_files(home))}
    (home / _MANIFEST).write_text(json.dumps(listed, indent=1), encoding="utf-8")


def _files(home: Path) -> Iterator[str]:
    return (str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def _sha256(path: Path) -> str | None:
    """Hexadecimal digest of a file's content; None if it is not there."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def main() -> None:
    """Fetch Flink, check it, and print where it is; an error is one message and exit code 1."""
    shown = ""

    def report(what: str, share: float) -> None:
        nonlocal shown
        line = f"{what} {share:4.0%}" if share else what
        if line != shown:
            print(f"\r{line:<40}", end="", file=sys.stderr, flush=True)
        shown = line

    try:
        home = flink_home(report, release_of(sys.argv[1]) if len(sys.argv) > 1 else FLINK)
        print("\r" if shown else "", end="", file=sys.stderr)
        if damaged := damaged_files(home):
            raise SluiceError(f"{len(damaged)} files in {home} were changed, {damaged[0]} for one; remove that folder")
    except SluiceError as error:
        sys.exit(f"failed: {error}")
    print(home)


if __name__ == "__main__":
    main()
