"""The rules that hold on pandas hold on Spark, and so does the evidence they look at."""

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from pipelines.checks.evidence import sample_evidence
from pipelines.checks.specification import SAMPLES
from spark.evidence import sample_evidence as spark_evidence
from spark.samples import read_samples
from spark.session import session
from testbeds.protocol import SAMPLE_SCHEMA

pytestmark = pytest.mark.slow

NAN, INF = float("nan"), float("inf")


def sample(task: int, step: int, **changed: Any) -> dict[str, Any]:
    texts = {"run": "r", "job": "q", "operator": "map", "worker": "w", "phase": "observe"}
    amounts = {f.name: 1.0 for f in SAMPLE_SCHEMA if f.name not in texts}
    return {**amounts, **texts, "task": task, "time_s": 5.0 * (step + 1), "interval_s": 5.0, **changed}


GOOD = [sample(task, step) for step in range(3) for task in range(2)]
BAD = [
    *GOOD,
    sample(0, 3, busy_s=6.5),
    sample(0, 1),
    sample(1, 3, bytes_out=INF),
    sample(1, 4, lag_records=NAN),
    sample(1, 5, state_latency_s=None, records_in=-1.0),
    sample(1, 6, interval_s=0.0),
]


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SAMPLE_SCHEMA)


def on_spark(rows: list[dict[str, Any]], folder: Path) -> DataFrame:
    path = folder / "samples.parquet"
    pq.write_table(table_of(rows), path)
    return spark_evidence(read_samples(session(), [str(path)]))


def broken(frame: pd.DataFrame | DataFrame) -> list[tuple[str, str, int]]:
    from pipelines.checks import rules
    from pipelines.checks.outcome import Subject
    from pipelines.checks.validation import validate

    columns = (*SAMPLES.columns, *SAMPLES.evidence)
    own = [*rules.structure(columns), *rules.content(columns, SAMPLES.key)]
    found = validate([Subject("samples", frame, own)], "r").violations
    return sorted((v.expectation, v.rule, v.count) for v in found)


def test_evidence_is_the_same(tmp_path: Path) -> None:
    key = ["task", "time_s", "busy_s"]
    names = [c.name for c in SAMPLES.evidence]
    expected = sample_evidence(table_of(BAD)).sort_values([*key, "step_s"])[names].reset_index(drop=True)
    got = on_spark(BAD, tmp_path).toPandas().sort_values([*key, "step_s"])[names].reset_index(drop=True)
    pd.testing.assert_frame_equal(got, expected, check_dtype=False)


def test_good_samples_break_no_rule(tmp_path: Path) -> None:
    assert broken(on_spark(GOOD, tmp_path)) == []


def test_bad_samples_break_the_same_rules_in_as_many_rows(tmp_path: Path) -> None:
    on_pandas = broken(sample_evidence(table_of(BAD)))
    assert broken(on_spark(BAD, tmp_path)) == on_pandas
    assert {rule.split(" ")[0] for _, rule, _ in on_pandas} == {
        *("no", "busy_share", "accounted_share", "step_s", "not_finite", "records_in", "interval_s")
    }
