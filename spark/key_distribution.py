"""The keys of a recorded stream on Spark, in one pass: each partition makes a sketch, and the sketches are merged.

Each executor runs Python with numpy and pyarrow, on batches of records; Sluice's own code is sent to it. What is kept
does not grow with the records, neither on an executor nor on the driver.
"""

from collections.abc import Hashable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    DateType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

import models
import spark
from models.errors import InvalidInput, SluiceError
from models.keys.columns import Column, Integers, Texts
from models.keys.sketch import KeySketch, Measure, check_columns
from spark.code import ship_code
from spark.mapping import reason_of

PACKAGES: Final = (models, spark)
"""What an executor may import."""
BATCH_RECORDS: Final = 1 << 20
"""Records whose keys are counted at once; what they take is most of an executor's memory."""
_SKETCH: Final = "sketch binary"
_KEY, _TIME, _WINDOW = "sluice key", "sluice time", "window"
_HASHED: Final = (ByteType, ShortType, IntegerType, LongType, BooleanType, DateType, StringType)
_DATA_EXCEPTION: Final = "22"
"""Class of SQLSTATE."""
_MICROSECONDS: Final = 1_000_000


def key_sketch(
    records: DataFrame, key: str, measure: Measure, *, time: str | None = None, window_s: float = 1.0
) -> KeySketch:
    """Sketch of the keys of all records.

    Args:
        key: Spark SQL expression over the columns; a struct for a key of several columns.
        time: expression for the time of a record, a TIMESTAMP; with it, key groups are counted in windows of time, too.

    Raises:
        InvalidInput: an expression is wrong, or has a type whose hash is not known.
        SluiceError: Spark failed.
    """
    ship_code(records.sparkSession.sparkContext, PACKAGES)
    keyed = keyed_records(records, key, time, window_s)
    names = [name for name in keyed.columns if name != _WINDOW]
    check_columns(len(names), measure.keyed_by)
    try:
        parts = keyed.mapInArrow(partial(_sketch_batches, names=names, measure=measure), _SKETCH)
        # Merged by one task, as they come: neither it nor the driver holds the sketches of all partitions.
        (merged,) = parts.repartition(1).mapInArrow(partial(_merge_batches, measure=measure), _SKETCH).collect()
    except PySparkException as error:
        if (error.getSqlState() or "").startswith(_DATA_EXCEPTION):
            raise InvalidInput(f"an expression fails on a record: {reason_of(error)}") from None
        raise SluiceError(f"Spark job failed while reading keys: {reason_of(error)}") from None
    return KeySketch.from_bytes(bytes(merged[0]), measure)


def keyed_records(records: DataFrame, key: str, time: str | None, window_s: float) -> DataFrame:
    """The columns of the key, and the number of the window of time if there is a time."""
    chosen = {_KEY: F.expr(key)} | ({} if time is None else {_TIME: F.expr(time)})
    try:
        # Beside the records' own columns, so that an aggregate is refused.
        selected = records.select("*", *(expression.alias(name) for name, expression in chosen.items()))
        kinds = {field.name: field.dataType for field in selected.schema}
    except PySparkException as error:
        raise InvalidInput(f"an expression cannot be used: {reason_of(error)}") from None
    of_key = kinds[_KEY]
    parts = {f.name: f.dataType for f in of_key} if isinstance(of_key, StructType) else {"": of_key}
    for name, kind in parts.items():
        _check_kind(f"the key's field {name!r}" if name else f"the key {key!r}", kind)
    fields = [F.col(_KEY)[name] if name else F.col(_KEY) for name in parts]
    columns = [field.alias(f"k{number}") for number, field in enumerate(fields)]
    return selected.select(*columns, *([] if time is None else [_window(time, kinds[_TIME], window_s)]))


def _check_kind(name: str, kind: DataType) -> None:
    if not isinstance(kind, _HASHED):
        raise InvalidInput(
            f"{name} must be a whole number, boolean, date or text, but is {kind.simpleString()}; cast it, for example "
            f"a TIMESTAMP(3) to the milliseconds that Flink hashes: unix_millis(...)"
        )


def _window(time: str, kind: DataType, window_s: float) -> Any:
    """Number of the window that a time is in."""
    if not isinstance(kind, TimestampType | TimestampNTZType):
        raise InvalidInput(
            f"the time {time!r} must be a timestamp, but is {kind.simpleString()}; convert it, for example "
            f"timestamp_millis(...) or timestamp_seconds(...)"
        )
    micros = F.unix_micros(F.col(_TIME).cast("timestamp"))
    return F.floor(micros / F.lit(round(window_s * _MICROSECONDS))).cast("long").alias(_WINDOW)


def _sketch_batches(
    batches: Iterator[pa.RecordBatch], names: Sequence[str], measure: Measure
) -> Iterator[pa.RecordBatch]:
    made = KeySketch.empty(measure)
    for records in _gathered(batches):
        known = records.drop_null() if any(column.null_count for column in records.columns) else records
        made.nulls += records.num_rows - known.num_rows
        counted = _counted(known, records.schema.names)
        if measure.window_groups is not None:
            windows, counts = (counted[name].to_numpy() for name in (_WINDOW, "count"))
            made.add_windows(_columns(counted, names), windows, counts)
            counted = counted.group_by(list(names), use_threads=False).aggregate([("count", "sum")])
            counted = counted.rename_columns([*names, "count"])
        made.add_keys(_columns(counted, names), counted["count"].to_numpy(), partial(_labels, counted, names))
    yield _batch_of(made)


def _merge_batches(batches: Iterator[pa.RecordBatch], measure: Measure) -> Iterator[pa.RecordBatch]:
    made = KeySketch.empty(measure)
    for batch in batches:
        for sketch in batch.column(0):
            made.merge(KeySketch.from_bytes(sketch.as_py(), measure))
    yield _batch_of(made)


def _batch_of(made: KeySketch) -> pa.RecordBatch:
    return pa.record_batch({"sketch": pa.array([made.to_bytes()], pa.binary())})


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Spark's batches of ten thousand records, joined to BATCH_RECORDS."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= BATCH_RECORDS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _counted(records: pa.Table, names: Sequence[str]) -> pa.Table:
    """Distinct rows, with the number of each in `count`."""
    counted = records.group_by(list(names), use_threads=False).aggregate([([], "count_all")])
    return counted.rename_columns([*names, "count"])


def _columns(table: pa.Table, names: Sequence[str]) -> list[Column]:
    return [_column(table[name].combine_chunks()) for name in names]


def _column(array: pa.Array | pa.ChunkedArray) -> Column:
    whole = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    kind = whole.type
    if pa.types.is_string(kind):
        whole = whole.cast(pa.large_string())
        _, offsets, data = whole.buffers()
        starts = np.frombuffer(offsets, np.int64)[whole.offset : whole.offset + len(whole) + 1]
        return Texts(np.frombuffer(data or b"", np.uint8), starts)
    if pa.types.is_boolean(kind):
        return Integers(pc.cast(whole, pa.int8()).to_numpy().astype(np.int64), 1, boolean=True)
    if pa.types.is_date(kind):
        whole = whole.cast(pa.int32())
    return Integers(whole.to_numpy().astype(np.int64), whole.type.bit_width // 8)


def _labels(table: pa.Table, names: Sequence[str], places: np.ndarray) -> list[Hashable]:
    """The keys at these places: a value, or a tuple of the values of several columns."""
    chosen = table.select(list(names)).take(pa.array(places))
    columns = [_plain(chosen[name]) for name in names]
    return columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))


def _plain(column: pa.ChunkedArray) -> list[Any]:
    """Values that JSON has, too."""
    return list((column.cast(pa.string()) if pa.types.is_date(column.type) else column).to_pylist())
