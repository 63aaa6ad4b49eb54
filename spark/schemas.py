"""Spark schemas of samples and features, from the column specification in `models.metrics`."""

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import AtomicType, DoubleType, LongType, StringType, StructField, StructType

from models.errors import InvalidInput
from models.metrics import FEATURE_COLUMNS, SAMPLE_COLUMNS, Column, ColumnType

_TYPES: Final[dict[ColumnType, AtomicType]] = {
    ColumnType.STRING: StringType(),
    ColumnType.LONG: LongType(),
    ColumnType.DOUBLE: DoubleType(),
}
_NEUTRAL: Final[dict[str, str | int | float]] = {"string": "", "bigint": 0, "double": 0.0}


def struct_type(columns: Iterable[Column]) -> StructType:
    """The StructType of a column specification."""
    return StructType([StructField(c.name, _TYPES[c.type], c.nullable) for c in columns])


SAMPLES: Final = struct_type(SAMPLE_COLUMNS)
FEATURES: Final = struct_type(FEATURE_COLUMNS)


def conform(frame: DataFrame, schema: StructType) -> DataFrame:
    """The columns of `schema`, in its order, with its types and its nullability.

    Spark treats every column of a file, and every sum, as nullable. Here a null in a column that allows none stops the job
    instead of being left out of a sum.

    Raises:
        InvalidInput: a column is missing or has another type.
    """
    have = {f.name: f.dataType for f in frame.schema.fields}
    for field in schema.fields:
        if field.name not in have:
            raise InvalidInput(
                f"column {field.name!r} is missing; the columns are: {', '.join(have)}; "
                f"it must be present as {field.dataType.simpleString()}"
            )
        if have[field.name] != field.dataType:
            raise InvalidInput(
                f"column {field.name!r} must be {field.dataType.simpleString()}, but is "
                f"{have[field.name].simpleString()}; fix the program that wrote it"
            )
    return frame.select([_conforming(f) for f in schema.fields])


def _conforming(field: StructField) -> Expression:
    column, type_ = F.col(field.name), field.dataType.simpleString()
    if field.nullable:
        return column
    message = F.lit(f"column {field.name!r} must not be null, but is")
    known = F.when(column.isNull(), F.raise_error(message).cast(type_)).otherwise(column)
    # The outer coalesce never takes effect; it is how the optimiser learns that the result is not null.
    return F.coalesce(known, F.lit(_NEUTRAL[type_])).alias(field.name)
