"""Sluice's own code for executors that run Python: the session sends it, so that they run the driver's version."""

import io
import zipfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from pyspark import SparkContext, SparkFiles


def ship_code(context: SparkContext, packages: Sequence[ModuleType]) -> None:
    """Make the packages importable on executors that run Python, once per session.

    On a local master executors use this environment, which has them already.
    """
    if (context.master or "").startswith("local"):
        return
    content = zipped_code(packages)
    # In Spark's own folder, from which it serves the file; it removes the folder when the session ends.
    archive = Path(SparkFiles.getRootDirectory()) / "code" / f"sluice-{sha256(content).hexdigest()[:12]}.zip"
    if archive.exists():
        return
    archive.parent.mkdir(exist_ok=True)
    archive.write_bytes(content)
    context.addPyFile(str(archive))


def zipped_code(packages: Sequence[ModuleType]) -> bytes:
    """A zip of the packages; the same code gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in packages:
            folder = Path(str(package.__file__)).parent
            for file in sorted(folder.rglob("*.py")):
                entry = zipfile.ZipInfo(str(file.relative_to(folder.parent)), date_time=(2025, 1, 1, 0, 0, 0))
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()
