"""Sluice's own code for executors that run Python: sent to them by the session, so that it is the driver's."""

import io
import zipfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import ModuleType

from pyspark import SparkContext, SparkFiles


def ship_code(context: SparkContext, packages: Sequence[ModuleType]) -> None:
    """Make the packages importable where executors run Python, once for each session.

    On a local master executors use this environment, which has them already.
    """
    if (context.master or "").startswith("local"):
        return
    content = zipped_code(packages)
    # In Spark's own folder, which it removes when the session ends; it serves the file from there until then.
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
