"""Reading recorded streams into Spark."""

from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from models.errors import InvalidInput
from spark.mapping import reason_of

_OPTIONS: Final = {"csv": {"header": "true", "mode": "FAILFAST"}, "json": {"mode": "FAILFAST"}, "parquet": {}}


def read_recorded(
    spark: SparkSession, location: str, kind: str, *, columns: str | None = None, where: str | None = None
) -> DataFrame:
    """The records of a file, or of all files of a folder.

    Args:
        location: path or URI.
        kind: parquet, csv (with a header line) or json (a document a line).
        columns: their names and types, as in `auction BIGINT, at TIMESTAMP`; if absent, those of a Parquet file, or
            those that CSV and JSON look like, for which the file is read once more.
        where: Spark SQL condition for the records to take.

    Raises:
        InvalidInput: it cannot be read as such, or the condition is wrong.
    """
    reader = spark.read.options(**_OPTIONS[kind])
    try:
        if columns is not None:
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


def _cause(error: Exception) -> str:
    """What a Java exception says was its first cause."""
    causes = [line.strip() for line in str(error).splitlines() if line.strip().startswith("Caused by:")]
    return (causes[-1].partition(": ")[2].partition(": ")[2] if causes else str(error).splitlines()[0])[:300]
