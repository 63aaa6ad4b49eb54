"""What a user says of a recorded stream: where it is, and the key that an operator of the job groups it by."""

from typing import Final

from pydantic import Field

from models.keys.sketch import KeyedBy
from models.schema import Format, Positive

LEAST_WINDOW_S: Final = 0.001


class RecordedStream(Format):
    """Records as they enter an operator that groups them by a key, or from which those can be computed."""

    file: str = Field(
        min_length=1,
        description="File or folder of .parquet, .csv, .json, .jsonl or .ndjson; a path or, for Parquet, a URI.",
    )
    key: str = Field(
        min_length=1, description="Spark SQL expression over the columns; struct(a, b) for a key of several columns."
    )
    where: str | None = Field(None, min_length=1, description="Spark SQL condition for the records that count.")
    time: str | None = Field(
        None,
        min_length=1,
        description="Expression for the time of a record, a TIMESTAMP; without it, change over time stays unknown.",
    )
    window_s: Positive = Field(1.0, ge=LEAST_WINDOW_S, description="Length of the windows of time, seconds.")
    keyed_by: KeyedBy = Field(
        KeyedBy.SQL,
        description="sql: Flink SQL computes the key; datastream: a DataStream's keyBy, whose key is a Java object.",
    )
    columns: str | None = Field(
        None,
        min_length=1,
        description="Columns of CSV or JSON with their types, as in 'auction BIGINT, at TIMESTAMP'; guessed if absent.",
    )
