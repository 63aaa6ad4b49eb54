"""Expectations from the column specification.

Importing this module takes several seconds, since it imports Great Expectations.
"""

from typing import Final

from great_expectations.expectations.core.expect_column_pair_values_to_be_equal import ExpectColumnPairValuesToBeEqual
from great_expectations.expectations.core.expect_column_values_to_be_between import ExpectColumnValuesToBeBetween
from great_expectations.expectations.core.expect_column_values_to_be_in_set import ExpectColumnValuesToBeInSet
from great_expectations.expectations.core.expect_column_values_to_be_in_type_list import (
    ExpectColumnValuesToBeInTypeList,
)
from great_expectations.expectations.core.expect_column_values_to_be_unique import ExpectColumnValuesToBeUnique
from great_expectations.expectations.core.expect_column_values_to_not_be_null import ExpectColumnValuesToNotBeNull
from great_expectations.expectations.core.expect_compound_columns_to_be_unique import ExpectCompoundColumnsToBeUnique
from great_expectations.expectations.core.expect_table_columns_to_match_ordered_list import (
    ExpectTableColumnsToMatchOrderedList,
)
from great_expectations.expectations.expectation import Expectation

from models.metrics import ROUNDING, Column, ColumnType

_TYPE_NAMES: Final = {
    ColumnType.STRING: ["str"],
    ColumnType.LONG: ["int64"],
    ColumnType.DOUBLE: ["float64"],
}
"""As pandas calls them."""


def structure(columns: tuple[Column, ...]) -> list[Expectation]:
    """Names, order and types of the columns."""
    ordered = ExpectTableColumnsToMatchOrderedList(
        column_list=[c.name for c in columns],
        description="the columns must be those of the specification, in its order",
    )
    return [ordered, *(_of_type(c) for c in columns)]


def content(columns: tuple[Column, ...], key: tuple[str, ...]) -> list[Expectation]:
    """Nulls, bounds and values of each column, and the key of the table."""
    description = f"no two rows may have the same {', '.join(key)}"
    unique: Expectation = (
        ExpectColumnValuesToBeUnique(column=key[0], description=description)
        if len(key) == 1
        else ExpectCompoundColumnsToBeUnique(column_list=list(key), description=description)
    )
    return [rule for column in columns for rule in _content_of(column)] + [unique]


def coverage() -> list[Expectation]:
    """Every operator of the job, in every measurement run, with all of its tasks."""
    return [
        ExpectColumnPairValuesToBeEqual(
            column_A="reported_tasks",
            column_B="expected_tasks",
            description="every operator of the job must be present in every measurement run, with all of its tasks",
        )
    ]


def _of_type(column: Column) -> Expectation:
    return ExpectColumnValuesToBeInTypeList(
        column=column.name,
        type_list=_TYPE_NAMES[column.type],
        description=f"{column.name} must be of type {column.type.value}",
        notes=column.description,
    )


def _content_of(column: Column) -> list[Expectation]:
    rules: list[Expectation] = []
    if not column.nullable:
        rules.append(
            ExpectColumnValuesToNotBeNull(
                column=column.name, description=f"{column.name} must not be null", notes=column.description
            )
        )
    if column.minimum is not None or column.maximum is not None:
        highest = column.maximum
        if highest is not None and column.type is ColumnType.DOUBLE:
            highest += ROUNDING
        rules.append(
            ExpectColumnValuesToBeBetween(
                column=column.name,
                min_value=column.minimum,
                strict_min=column.above_minimum,
                max_value=highest,
                description=f"{column.name} must be {_bounds(column)}",
                notes=column.description,
            )
        )
    if column.values:
        rules.append(
            ExpectColumnValuesToBeInSet(
                column=column.name,
                value_set=list(column.values),
                description=f"{column.name} must be one of {', '.join(column.values)}",
                notes=column.description,
            )
        )
    return rules


def _bounds(column: Column) -> str:
    unit = "" if column.unit in ("", "ratio") else f" {column.unit}"
    if column.maximum is None:
        return f"{'above' if column.above_minimum else 'at least'} {column.minimum:g}{unit}"
    if column.maximum == column.minimum:
        return f"{column.maximum:g}"
    return f"between {column.minimum:g} and {column.maximum:g}{unit}"
