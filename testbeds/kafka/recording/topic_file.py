"""Records a sample of a topic into a Parquet file."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from models.errors import InvalidInput
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.recording.json_values import JsonColumns
from testbeds.kafka.recording.sampling import SCHEMA, TopicRange, TopicSample

_REGISTRY_MARK: Final = 0
"""First byte of values that a schema registry's serializer has written."""
_PREFIX: Final = "value_"


class ValueColumns(StrEnum):
    """What becomes of the values besides the column `value`."""

    AUTO = "auto"
    JSON = "json"
    NONE = "none"


@dataclass(frozen=True)
class RecordedTopic:
    """What was recorded."""

    topic: str
    file: Path
    records: int
    partitions: dict[int, int]
    """Records of each partition."""
    columns: tuple[str, ...]
    remarks: tuple[str, ...]
    """In sentences: what the reader of the file should know."""


def record(
    connection: KafkaConnection,
    topic: str,
    file: Path,
    wanted: TopicRange,
    values: ValueColumns = ValueColumns.AUTO,
    report: Callable[[str, float], None] = lambda what, share: None,
) -> RecordedTopic:
    """Write key, value, partition, offset and timestamp of each record, and the fields of JSON values as columns.

    A field that has the name of one of those is called `value_` and its name. The file is written completely or not at all.

    Args:
        report: called with the current step and its progress, 0-1.

    Raises:
        InvalidInput: there is no such topic, it has no records, or values are not the JSON objects that they should be.
        SluiceError: no broker answers.
    """
    if not file.parent.is_dir():
        raise InvalidInput(f"the folder {file.parent} does not exist; create it, or name another file")
    sample = TopicSample(connection, topic, wanted)
    with tempfile.TemporaryDirectory(prefix=f".{file.name}-", dir=file.parent) as folder:
        read, seen = Path(folder) / "read.parquet", _Seen(values)
        with pq.ParquetWriter(read, SCHEMA) as writer:
            for part in sample.read():
                seen.take(part.records)
                writer.write_batch(part.records)
                report(f"recording {topic}", part.share)
        if seen.records == 0:
            raise InvalidInput(
                f"no record arrived in the topic {topic!r} within {wanted.for_s:g} s; check that what writes to it runs"
            )
        written = Path(folder) / "written.parquet"
        columns = seen.rewrite(read, written, lambda share: report(f"writing {file.name}", share))
        written.replace(file)
    remarks = seen.remarks
    if empty := sample.empty_partitions if wanted.for_s is None else []:
        remarks.append(f"{_some(empty)} of {topic} held no records")
    return RecordedTopic(topic, file, seen.records, dict(sorted(seen.partitions.items())), columns, tuple(remarks))


class _Seen:
    """What is known of the records so far."""

    def __init__(self, values: ValueColumns) -> None:
        self._values, self._json = values, JsonColumns()
        self._expanded = values is not ValueColumns.NONE
        self._texts = {"key": True, "value": True}
        self.records = 0
        self.partitions: dict[int, int] = {}
        self.remarks: list[str] = []

    def take(self, batch: pa.RecordBatch) -> None:
        self.records += batch.num_rows
        for partition in batch["partition"].to_pylist():
            self.partitions[partition] = self.partitions.get(partition, 0) + 1
        for name, text in self._texts.items():
            self._texts[name] = text and _is_text(batch[name])
        if self._expanded:
            try:
                self._json.learn(batch["value"])
            except InvalidInput as error:
                if self._values is ValueColumns.JSON:
                    raise InvalidInput(f"the values of the topic do not parse: {error} (--values none)") from None
                self._expanded = False
                self.remarks.append(_why_not(batch["value"], str(error)))

    def rewrite(self, read: Path, written: Path, report: Callable[[float], None]) -> tuple[str, ...]:
        """The file with text columns instead of bytes where they are that, and the columns of JSON values."""
        schema, done = self._schema(), 0
        with pq.ParquetFile(read) as file, pq.ParquetWriter(written, schema, compression="zstd") as writer:
            for batch in file.iter_batches():
                columns = [batch[name].cast(schema.field(name).type) for name in SCHEMA.names]
                if self._expanded and len(self._json.schema):
                    columns += (
                        self._json.columns(batch["value"]).select(self._json.schema.names).combine_chunks().columns
                    )
                writer.write_table(pa.table(columns, schema=schema))
                done += batch.num_rows
                report(done / self.records)
        return tuple(schema.names)

    def _schema(self) -> pa.Schema:
        fields = [pa.field(field.name, pa.string()) if self._texts.get(field.name) else field for field in SCHEMA]
        if self._expanded:
            for field in self._json.schema:
                # Parquet has no column without a type; a field that was always null is a text without values.
                kind = pa.string() if pa.types.is_null(field.type) else field.type
                name = f"{_PREFIX}{field.name}" if field.name in SCHEMA.names else field.name
                fields.append(pa.field(name, kind))
        return pa.schema(fields)


def _is_text(values: pa.Array) -> bool:
    try:
        values.cast(pa.string())
        return True
    except pa.ArrowInvalid:
        return False


def _why_not(values: pa.Array, said: str) -> str:
    first = next((value for value in values.to_pylist() if value), b"")
    if first[:1] == bytes([_REGISTRY_MARK]):
        return (
            "the values are those of a schema registry's serializer (Avro or Protobuf), which is not decoded: they were "
            "recorded as bytes"
        )
    return f"values were recorded as they are, without columns of their own: {said}"


def _some(partitions: list[int]) -> str:
    shown = ", ".join(map(str, partitions[:5])) + (" and others" if len(partitions) > 5 else "")
    return f"{len(partitions)} partitions ({shown})" if len(partitions) > 1 else f"partition {shown}"
