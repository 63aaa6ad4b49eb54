"""Jars from a Maven repository, by Maven itself, so that a user's own settings (mirrors, proxies) hold.

What is fetched is stated by two files beside each other: `NAME.pom.xml` names artifacts with their versions, and
`NAME.sha256` all jars that they bring, with their digests, as `sha256sum` writes it. After a change of versions,
`python -m testbeds.local.maven NAME.pom.xml` writes the second from the first.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Final

from models.errors import SluiceError
from testbeds.local.cache import cache_folder, made_once

PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_POM: Final = ".pom.xml"
_MOST_LINES: Final = 3
"""Lines of Maven's output that an error shows."""


def jars(pom: Path, needed_by: str) -> Path:
    """The folder of the jars that a pom names, fetched at the first call; every call checks their digests.

    Args:
        needed_by: named in errors.

    Raises:
        SluiceError: there is no Maven, it failed, or a jar is not the one that was expected.
    """
    stated = digests(pom)
    name = pom.name.removesuffix(_POM)
    made_from = hashlib.sha256(pom.read_bytes() + _digest_file(pom).read_bytes()).hexdigest()[:16]
    folder = cache_folder() / f"{name}-jars-{made_from}"
    return made_once(folder, partial(_fetch, pom, stated, needed_by), lambda made: _found(made) == stated)


def find_maven(needed_by: str) -> str:
    """The path of Maven's command.

    Args:
        needed_by: named in the error.

    Raises:
        SluiceError: there is none on the PATH; the message is one line with the fix.
    """
    if (found := shutil.which("mvn")) is None:
        raise SluiceError(
            f"{needed_by} needs Maven, and no 'mvn' was found on the PATH; install it (Debian, Ubuntu: apt-get install maven)"
        )
    return found


def digests(pom: Path) -> dict[str, str]:
    """The expected SHA-256 of each jar, by its file name."""
    lines = (line.split() for line in _digest_file(pom).read_text(encoding="utf-8").splitlines())
    return {name: digest for digest, name in lines}


def _digest_file(pom: Path) -> Path:
    return pom.with_name(pom.name.removesuffix(_POM) + ".sha256")


def _found(folder: Path) -> dict[str, str]:
    return {path.name: _sha256(path) for path in sorted(folder.glob("*.jar"))}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _fetch(pom: Path, stated: dict[str, str], needed_by: str, made: Path) -> None:
    _copy_dependencies(pom, needed_by, made)
    found = _found(made)
    if wrong := sorted(name for name in stated.keys() | found.keys() if stated.get(name) != found.get(name)):
        raise SluiceError(
            f"{len(wrong)} of the jars that {needed_by} needs are not the expected ones, {wrong[0]} for one (SHA-256 "
            f"{found.get(wrong[0], 'none: it was not fetched')}); remove it from Maven's local repository, check the "
            f"mirror in Maven's settings, and call again"
        )


def _copy_dependencies(pom: Path, needed_by: str, made: Path) -> None:
    maven = find_maven(needed_by)
    with tempfile.TemporaryDirectory() as folder:
        # Maven may write beside the pom.
        copied = shutil.copy(pom, Path(folder) / "pom.xml")
        command = [maven, "--batch-mode", "--no-transfer-progress", "--file", str(copied)]
        command += [f"{PLUGIN}:copy-dependencies", f"-DoutputDirectory={made}", "-DincludeScope=runtime"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        said = [line for line in done.stdout.splitlines() if line.startswith("[ERROR]")] or done.stdout.splitlines()
        raise SluiceError(
            f"Maven could not fetch the jars that {needed_by} needs; check the network and Maven's settings (mirrors, "
            f"proxies), then call again. Maven said: {' '.join(said[:_MOST_LINES])[:1000] or done.stderr.strip()[:1000]}"
        )


def main(arguments: list[str]) -> None:
    """Fetch what a pom names, and write the digests of it."""
    pom = Path(arguments[0])
    with tempfile.TemporaryDirectory() as folder:
        try:
            _copy_dependencies(pom, pom.name, Path(folder))
        except SluiceError as error:
            sys.exit(f"failed: {error}")
        lines = [f"{digest}  {name}\n" for name, digest in _found(Path(folder)).items()]
    _digest_file(pom).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
