"""The column specification is consistent, and rates are those of DS2's equations."""

import numpy as np
import pytest

from models.metrics import (
    FEATURE_COLUMNS,
    FEATURE_EVIDENCE,
    FEATURE_KEY,
    FEATURE_PHASES,
    SAMPLE_COLUMNS,
    SAMPLE_EVIDENCE,
    SAMPLE_KEY,
    SAMPLE_PHASES,
    Column,
    ColumnType,
    observed_rate,
    true_rate,
)

TABLES = [(SAMPLE_COLUMNS, SAMPLE_EVIDENCE, SAMPLE_KEY), (FEATURE_COLUMNS, FEATURE_EVIDENCE, FEATURE_KEY)]


@pytest.mark.parametrize(("columns", "evidence", "key"), TABLES)
def test_names_are_unique_and_keys_are_never_null(
    columns: tuple[Column, ...], evidence: tuple[Column, ...], key: tuple[str, ...]
) -> None:
    by_name = {c.name: c for c in (*columns, *evidence)}
    assert len(by_name) == len(columns) + len(evidence)
    assert all(not by_name[name].nullable for name in key)


@pytest.mark.parametrize("column", [*SAMPLE_COLUMNS, *SAMPLE_EVIDENCE, *FEATURE_COLUMNS], ids=lambda c: c.name)
def test_a_column_says_what_it_is(column: Column) -> None:
    assert column.description.endswith(".")
    assert (column.unit == "") or column.type is not ColumnType.STRING
    assert (column.minimum is None) == (column.type is ColumnType.STRING)
    assert column.maximum is None or column.minimum is None or column.minimum <= column.maximum
    assert not column.values or column.type is ColumnType.STRING


def test_a_unit_in_a_name_is_the_unit_of_the_column() -> None:
    suffixes = {"_s": "s", "_bytes": "bytes", "_rate": ("records/s", "ratio"), "_records": "records"}
    for column in (*SAMPLE_COLUMNS, *FEATURE_COLUMNS):
        for suffix, unit in suffixes.items():
            if column.name.endswith(suffix):
                assert column.unit in unit, column


def test_features_come_from_phases_that_samples_have() -> None:
    assert set(FEATURE_PHASES) < set(SAMPLE_PHASES)


def test_rates_are_those_of_ds2() -> None:
    records, elapsed_s, useful_s = np.array([2000.0, 100.0]), np.array([10.0, 10.0]), np.array([4.0, 1.0])
    assert observed_rate(records, elapsed_s).tolist() == [200.0, 10.0]
    assert true_rate(records, useful_s).tolist() == [500.0, 100.0]
    assert (observed_rate(2000.0, 10.0), true_rate(2000.0, 4.0)) == (200.0, 500.0)
