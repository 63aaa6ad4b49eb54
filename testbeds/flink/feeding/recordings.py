"""Recorded files that sources replay: JSON lines and CSV as they are, Parquet converted to JSON lines once."""

import hashlib
import json
import math
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from models.errors import InvalidInput
from testbeds.local.cache import cache_folder, made_once

FORMATS: Final = {".jsonl": "json", ".json": "json", ".ndjson": "json", ".csv": "csv", ".parquet": "parquet"}
"""By the ending of a file."""
_LINES: Final = "lines.jsonl"
_BLOCK_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Recording:
    """A file with one record per line (or row of Parquet), replayed in a loop."""

    path: Path
    format: str
    """json, csv or parquet."""
    time_column: str | None = None
    """Column of the event time, which is re-based to the time of emission; None: the column of the table's watermark."""
    header_lines: int = 0


def recording(path: Path, time_column: str | None = None, header_lines: int = 0) -> Recording:
    """A recording by its file.

    Raises:
        InvalidInput: the file does not exist, or its ending names no known format.
    """
    if not path.is_file():
        raise InvalidInput(f"the recorded file {path} does not exist; check the path")
    if path.suffix.lower() not in FORMATS:
        raise InvalidInput(f"a recorded file must end in one of {', '.join(FORMATS)}, but {path.name!r} does not")
    return Recording(path, FORMATS[path.suffix.lower()], time_column, header_lines)


def as_text(recorded: Recording) -> Recording:
    """The recording as a text file; Parquet is converted, and cached by content.

    Raises:
        InvalidInput: the Parquet file cannot be read.
    """
    if recorded.format != "parquet":
        return replace(recorded, path=recorded.path.resolve())
    folder = cache_folder() / "recordings" / digest_of(recorded.path)[:16]
    try:
        made = made_once(folder, partial(_convert, recorded.path))
    except pa.ArrowException as error:
        raise InvalidInput(f"{recorded.path} must be a Parquet file, but cannot be read as one: {error}") from error
    return Recording(made / _LINES, "json", recorded.time_column)


def records_in(recorded: Recording) -> int:
    """Records in a recording: rows of Parquet, else lines that are not empty.

    Raises:
        InvalidInput: there are none, or the file cannot be read.
    """
    if recorded.format == "parquet":
        try:
            found = pq.ParquetFile(recorded.path).metadata.num_rows
        except pa.ArrowException as error:
            raise InvalidInput(f"{recorded.path} must be a Parquet file, but cannot be read as one: {error}") from error
    else:
        with recorded.path.open("rb") as lines:
            found = sum(line != b"\n" for line in lines) - recorded.header_lines
    if found <= 0:
        raise InvalidInput(f"the recorded file {recorded.path} has no line of data")
    return int(found)


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _convert(path: Path, made: Path) -> None:
    with (made / _LINES).open("w", encoding="utf-8") as lines, pq.ParquetFile(path) as table:
        for batch in table.iter_batches():
            lines.writelines(json.dumps(_with_nulls(row), default=_plain) + "\n" for row in batch.to_pylist())


def _with_nulls(value: Any) -> Any:
    """NULL for NaN and infinite numbers, which JSON does not have."""
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: _with_nulls(inner) for name, inner in value.items()}
        case list():
            return [_with_nulls(inner) for inner in value]
    return value


def _plain(value: Any) -> Any:
    """Values without a JSON type, as Flink's format `json` reads them: times in SQL style."""
    match value:
        case datetime():
            local = value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
            return local.isoformat(sep=" ", timespec="milliseconds") + ("" if value.tzinfo is None else "Z")
        case date() | time():
            return value.isoformat()
        case Decimal():
            return float(value)
        case bytes():
            return value.decode("utf-8", errors="replace")
    raise InvalidInput(
        f"a column of the Parquet file holds {type(value).__name__}, which cannot be replayed; leave it out"
    )
