"""One jar from several, as users build theirs with a shading plugin."""

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

SERVICES: Final = "META-INF/services/"
_LEFT_OUT: Final = ("META-INF/MANIFEST", "META-INF/INDEX.LIST")
_SIGNED: Final = (".SF", ".DSA", ".RSA")


def user_jar(parts: Iterable[Path], made: Path) -> Path:
    """Put jars and folders of classes into one jar: of files with the same name the first counts, and lists of services are
    joined.

    Signatures are left out, since they are those of the single jars.
    """
    services: dict[str, list[bytes]] = {}
    seen: set[str] = set()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as out:
        for part in parts:
            for name, content in _files(part):
                if name.startswith(_LEFT_OUT) or (name.startswith("META-INF/") and name.endswith(_SIGNED)):
                    continue
                if name.startswith(SERVICES):
                    services.setdefault(name, []).append(content)
                elif name not in seen:
                    seen.add(name)
                    out.writestr(name, content)
        for name, contents in services.items():
            out.writestr(name, b"\n".join(contents))
    return made


def _files(part: Path) -> Iterable[tuple[str, bytes]]:
    if part.is_dir():
        for path in sorted(part.rglob("*")):
            if path.is_file():
                yield str(path.relative_to(part)), path.read_bytes()
        return
    with zipfile.ZipFile(part) as jar:
        for name in jar.namelist():
            if not name.endswith("/"):
                yield name, jar.read(name)
