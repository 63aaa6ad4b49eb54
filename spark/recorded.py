"""Reading recorded streams into Spark."""

from collections.abc import Sequence
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from models.errors import InvalidInput
from spark.mapping import reason_of

_OPTIONS: Final = {
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false"},
    "json": {"mode": "FAILFAST"},
    "parquet": {},
}


def read_recorded(
    spark: SparkSession, location: str, kind: str, *, columns: str | None = None, where: str | None = None
) -> DataFrame:
    """The records of a file, or of all files of a folder.

    Args:
        location: path or URI.
        kind: parquet, csv (with a header line) or json (a document a line).
        columns: names and types of those to read, as in `auction BIGINT, at TIMESTAMP`; if absent, those of a Parquet file,
            or those that CSV and JSON look like, for which the file is read once more.
        where: Spark SQL condition for the records to take.

    Raises:
        InvalidInput: it cannot be read as such, or the condition is wrong.
    """
    reader = spark.read.options(**_OPTIONS[kind])
    try:
        if columns is not None and kind == "csv":
            reader = reader.schema(_by_header(columns, reader.format(kind).load(location).columns, location))
        elif columns is not None:
            reader = reader.schema(columns)
        elif kind == "csv":
            reader = reader.option("inferSchema", "true")
        records = reader.format(kind).load(location)
    except (PySparkException, Py4JError) as error:
        raise InvalidInput(f"{location} cannot be read as {kind}: {_cause(error)}") from None
    try:
        return records if where is None else records.where(where)
    except PySparkException as error:
        raise InvalidInput(f"the condition {where!r} cannot be used: {reason_of(error)}") from None


def _by_header(columns: str, header: Sequence[str], location: str) -> StructType:
    """The stated columns where the header has them, since Spark takes those of CSV by position; the others as text."""
    schema = StructType.fromDDL(columns)
    if not isinstance(schema, StructType):
        raise InvalidInput(
            f"columns must be names and types, as in auction BIGINT, at TIMESTAMP, but got {columns!r:.200}"
        )
    stated = {field.name.lower(): field.dataType for field in schema.fields}
    if missing := stated.keys() - {name.lower() for name in header}:
        raise InvalidInput(
            f"{location} must have the columns that are stated, but its header names {', '.join(header)}, and not "
            f"{', '.join(sorted(missing))}; correct the columns"
        )
    return StructType([StructField(name, stated.get(name.lower(), StringType())) for name in header])


def _cause(error: Exception) -> str:
    """What a Java exception says was its first cause."""
    causes = [line.strip() for line in str(error).splitlines() if line.strip().startswith("Caused by:")]
    return (causes[-1].partition(": ")[2].partition(": ")[2] if causes else str(error).splitlines()[0])[:300]
