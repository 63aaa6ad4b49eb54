"""What is said of files that cannot be read."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from models.errors import InvalidInput
from spark.samples import fault_of_file, read_samples

pytestmark = pytest.mark.slow


def failed(spark: SparkSession, *files: Path) -> Exception | None:
    with pytest.raises(Py4JJavaError) as raised:
        read_samples(spark, [str(file) for file in files]).toArrow()
    return fault_of_file(raised.value)


def test_a_file_that_cannot_be_read_is_named_with_the_reason(
    spark: SparkSession, random_samples: Callable[..., Any], tmp_path: Path
) -> None:
    good, broken, other, damaged = (tmp_path / f"{name}.parquet" for name in ("good", "broken", "other", "damaged"))
    pq.write_table(random_samples(1), good)
    broken.write_bytes(b"no Parquet")
    pq.write_table(pa.table({"run": [1], "job": ["q"]}), other)
    content = good.read_bytes()
    damaged.write_bytes(content[:100] + bytes(200) + content[300:])

    found = failed(spark, good, broken)
    assert isinstance(found, InvalidInput)
    assert str(found).endswith(
        "broken.parquet is not a Parquet file (length is too low: 10); replace this file, or remove it"
    )
    found = failed(spark, good, other)
    assert isinstance(found, InvalidInput)
    assert "other.parquet. Data type mismatches when reading Parquet column [run]" in str(found)
    found = failed(spark, good, damaged)
    assert isinstance(found, OSError), "Java says the same of a connection that breaks"
    assert "damaged.parquet" in str(found)


def test_a_job_that_fails_for_another_reason_has_no_such_fault(spark: SparkSession) -> None:
    with pytest.raises(Py4JJavaError) as raised:
        spark.sparkContext._jvm.java.util.LinkedList().getFirst()  # type: ignore[union-attr]
    assert fault_of_file(raised.value) is None
