"""Sketches of recorded keys on Spark: exact key groups whatever the partitions, of every type whose hash is known."""

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from models.errors import InvalidInput
from models.keys.columns import Integers, row_hash
from models.keys.groups import group_of
from models.keys.sketch import KeyedBy, KeySketch, Measure
from spark.key_distribution import key_sketch
from spark.recorded import read_recorded

pytestmark = pytest.mark.slow


def bids(records: int = 5000, seed: int = 1) -> pa.Table:
    """Bids of 10 s: Zipf-distributed auctions, and one key of each other type."""
    random = np.random.default_rng(seed)
    auction = random.zipf(1.5, records) % 10**6
    return pa.table(
        {
            "auction": pa.array(auction, pa.int64()),
            "small": pa.array(auction % 100, pa.int16()),
            "user": pa.array([f"user-{key}" for key in auction]),
            "hot": pa.array(auction == 1),
            "at": pa.array(np.arange(records) * 10_000_000 // records, pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture
def recorded(tmp_path: Path) -> str:
    """In three files."""
    table, folder = bids(), tmp_path / "bids"
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(table.num_rows), 3)):
        pq.write_table(table.take(rows), folder / f"part-{number}.parquet")
    return str(folder)


def sketch(spark: SparkSession, recorded: str, key: str, measure: Measure | None = None, **given: str) -> KeySketch:
    return key_sketch(read_recorded(spark, recorded, "parquet"), key, measure or Measure(), **given)


def test_key_groups_are_counted_exactly_however_the_file_is_read(spark: SparkSession, recorded: str) -> None:
    keys = bids()["auction"].to_numpy()
    made = sketch(spark, recorded, "auction")
    assert np.array_equal(made.groups, np.bincount(group_of(row_hash([Integers(keys, 8)]), 32768), minlength=32768))
    values, counts = np.unique(keys, return_counts=True)
    assert made.heavy.counts == made.sample.counts == dict(zip(values.tolist(), counts.tolist(), strict=True))
    frame = read_recorded(spark, recorded, "parquet").repartition(7)
    assert np.array_equal(key_sketch(frame, "auction", Measure()).groups, made.groups)


def test_windows_hold_the_records_of_their_time(spark: SparkSession, recorded: str) -> None:
    made = sketch(spark, recorded, "auction", Measure(window_groups=128), time="at")
    assert made.windows is not None
    assert {number: int(counts.sum()) for number, counts in made.windows.counts.items()} == dict.fromkeys(
        range(10), 500
    )
    assert np.array_equal(sum(made.windows.counts.values()), made.groups.reshape(256, 128).sum(axis=0))


@pytest.mark.parametrize(
    ("key", "keyed_by", "same_as"),
    [
        ("cast(auction AS INT)", "sql", "auction"),
        ("concat('user-', auction)", "sql", "user"),
        ("struct(auction AS a)", "sql", "auction"),
        ("cast(auction AS INT)", "datastream", "auction"),
        ("unix_date(date_add(DATE'1970-01-01', small))", "sql", "date_add(DATE'1970-01-01', small)"),
    ],
)
def test_an_expression_is_hashed_by_its_type(
    spark: SparkSession, recorded: str, key: str, keyed_by: str, same_as: str
) -> None:
    measure = Measure(KeyedBy(keyed_by), groups=128)
    assert np.array_equal(
        sketch(spark, recorded, key, measure).groups, sketch(spark, recorded, same_as, measure).groups
    )


def test_every_supported_type_and_several_columns_are_counted(spark: SparkSession, recorded: str) -> None:
    for key in ("small", "user", "hot", "cast(small AS TINYINT)", "DATE'2026-01-01'", "struct(auction, user, hot)"):
        made = sketch(spark, recorded, key)
        assert made.records == 5000 and sum(made.heavy.counts.values()) == 5000, key
    assert (1, "user-1", True) in made.heavy.counts


def test_records_without_a_key_are_counted_apart(spark: SparkSession, recorded: str) -> None:
    made = sketch(spark, recorded, "nullif(auction, 1)")
    ones = int((bids()["auction"].to_numpy() == 1).sum())
    assert (made.nulls, made.records) == (ones, 5000 - ones) and ones > 0


@pytest.mark.parametrize(
    ("key", "given", "said"),
    [
        ("nowhere", {}, "nowhere"),
        ("auction +", {}, "expression cannot be used"),
        ("at", {}, "'at' must be a whole number.*is timestamp.*unix_millis"),
        ("auction / 2", {}, "is double"),
        ("struct(auction, at)", {}, "field 'at' must be"),
        ("auction", {"time": "auction"}, "must be a timestamp, but is bigint"),
        ("max(auction)", {}, "expression cannot be used"),
    ],
)
def test_what_cannot_be_a_key_or_a_time_is_refused(
    spark: SparkSession, recorded: str, key: str, given: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        sketch(spark, recorded, key, Measure(window_groups=128) if given else None, **given)


def test_a_datastreams_key_is_one_value(spark: SparkSession, recorded: str) -> None:
    with pytest.raises(InvalidInput, match="one value, but has 2 columns"):
        sketch(spark, recorded, "struct(auction, user)", Measure(KeyedBy.DATASTREAM))


def test_a_record_that_an_expression_fails_on_is_reported(spark: SparkSession, recorded: str) -> None:
    with pytest.raises(InvalidInput, match=r"fails on a record.*CAST_INVALID_INPUT"):
        sketch(spark, recorded, "cast(user AS BIGINT)")


def test_csv_and_json_are_read_with_stated_or_guessed_types(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("who,at\n007,2026-01-01T00:00:00Z\n8,2026-01-01T00:00:01Z\n")
    (tmp_path / "a.jsonl").write_text('{"who": "007"}\n{"who": "8"}\n')
    guessed = read_recorded(spark, str(tmp_path / "a.csv"), "csv")
    assert [row.who for row in guessed.collect()] == [7, 8]
    assert guessed.collect()[0].at == datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None)
    stated = read_recorded(spark, str(tmp_path / "a.csv"), "csv", columns="who STRING, at TIMESTAMP", where="who > '1'")
    assert [row.who for row in stated.collect()] == ["8"]
    turned = (
        read_recorded(spark, str(tmp_path / "a.csv"), "csv", columns="at TIMESTAMP, who INT").orderBy("who").collect()
    )
    assert [row.who for row in turned] == [7, 8], "columns of CSV are found by name, in any order"
    with pytest.raises(InvalidInput, match="its header names who, at, and not bidder"):
        read_recorded(spark, str(tmp_path / "a.csv"), "csv", columns="at TIMESTAMP, bidder INT")
    assert [row.who for row in read_recorded(spark, str(tmp_path / "a.jsonl"), "json").collect()] == ["007", "8"]


def test_what_cannot_be_read_is_refused(spark: SparkSession, tmp_path: Path, recorded: str) -> None:
    (tmp_path / "no.parquet").write_text("no")
    with pytest.raises(InvalidInput, match="cannot be read as parquet"):
        read_recorded(spark, str(tmp_path / "no.parquet"), "parquet")
    with pytest.raises(InvalidInput, match="condition 'nowhere = 1' cannot be used"):
        read_recorded(spark, recorded, "parquet", where="nowhere = 1")
    with pytest.raises(InvalidInput, match="cannot be read as csv"):
        read_recorded(spark, recorded, "csv", columns="no type at all")
