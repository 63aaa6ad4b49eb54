"""From recorded streams to sketches of their keys."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from models.errors import InvalidInput
from models.keys.groups import MOST_KEY_GROUPS, key_groups
from models.keys.sketch import Measure
from pipelines.keys.stream import RecordedStream
from testbeds.flink.feeding.recordings import FORMATS

if TYPE_CHECKING:
    from models.keys.sketch import KeySketch


def sketch_of(stream: RecordedStream, parallelism: Sequence[int], total: int | None) -> "KeySketch":
    """Sketch of a recorded stream's keys, from which shares at any of these parallelisms can be computed.

    Args:
        total: key groups; None: Flink's default for each parallelism.

    Raises:
        InvalidInput: the file or an expression is wrong, or there is a record without a key, or none at all.
        SluiceError: Spark failed.
    """
    # Spark takes seconds to import; a wrong file is reported before.
    kind = _kind(stream.file)
    from spark.key_distribution import key_sketch
    from spark.recorded import read_recorded
    from spark.session import session

    records = read_recorded(session(), stream.file, kind, columns=stream.columns, where=stream.where)
    in_windows = max((key_groups(p) for p in parallelism), default=key_groups(1)) if total is None else total
    measure = Measure(
        keyed_by=stream.keyed_by,
        groups=MOST_KEY_GROUPS if total is None else total,
        window_groups=None if stream.time is None else in_windows,
    )
    made = key_sketch(records, stream.key, measure, time=stream.time, window_s=stream.window_s)
    _check_complete(stream, made)
    return made


def _kind(file: str) -> str:
    """The format of a file by its ending; of a folder by those of its files."""
    path = Path(file)
    if "://" in file:
        return FORMATS.get(path.suffix.lower(), "parquet")
    if not path.exists():
        raise InvalidInput(f"the recorded file {file} does not exist; check the path")
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    kinds = {FORMATS[one.suffix.lower()] for one in found if one.suffix.lower() in FORMATS}
    if len(kinds) != 1:
        raise InvalidInput(
            f"{file} must be a file, or a folder of files, that end in one of {', '.join(FORMATS)}, all of one format, "
            f"but has {' and '.join(sorted(kinds)) or 'none'}"
        )
    return kinds.pop()


def _check_complete(stream: RecordedStream, made: "KeySketch") -> None:
    if made.nulls:
        what = "key" if stream.time is None else "key or time"
        raise InvalidInput(
            f"every record must have a {what}, but in {made.nulls:,} of {made.nulls + made.records:,} records of "
            f"{stream.file} it is NULL; leave them out with a condition (where), or give an expression that is never NULL"
        )
    if made.records == 0:
        raise InvalidInput(f"{stream.file} has no records" + (f" with {stream.where}" if stream.where else ""))
