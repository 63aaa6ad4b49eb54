"""Features on Spark: figures that can be checked by hand, and agreement with a computation in plain Python."""

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from models.errors import InvalidInput
from models.metrics import observed_rate, true_rate
from pipelines.inputs.catalogue import load_job
from pipelines.measuring.estimate import operator_rates
from spark.features import features
from spark.schemas import FEATURES
from testbeds.protocol import SAMPLE_SCHEMA

pytestmark = pytest.mark.slow

Row = dict[str, Any]


def sample(operator: str, task: int, time_s: float = 5.0, **amounts: Any) -> Row:
    """One sample of 5 s in which nothing happened but `amounts`."""
    texts = {"run": "r", "job": "q", "operator": operator, "worker": "tm-1", "phase": "observe"}
    zero = {f.name: 0.0 for f in SAMPLE_SCHEMA if f.name not in texts and not f.nullable}
    unknown = {"state_latency_s": None, "lag_records": None}
    return {**zero, **unknown, **texts, "task": task, "time_s": time_s, "interval_s": 5.0, **amounts}


def extract(spark: SparkSession, rows: list[Row]) -> dict[str, Row]:
    """Features by operator, of one run."""
    made = features(spark.createDataFrame(pa.Table.from_pylist(rows, SAMPLE_SCHEMA)))
    return {row["operator"]: row.asDict() for row in made.collect()}


def test_the_output_has_exactly_the_schema_with_its_nullability(spark: SparkSession) -> None:
    made = features(spark.createDataFrame(pa.Table.from_pylist([sample("a", 0)], SAMPLE_SCHEMA)))
    assert made.schema == FEATURES
    assert [f.nullable for f in made.schema] == [f.nullable for f in FEATURES]


def test_rates_are_sums_over_tasks_of_rates_over_their_window(spark: SparkSession) -> None:
    rows = [
        sample("bids", 0, records_in=5000.0, records_out=5000.0, busy_s=1.0, lag_records=0.0),
        sample("count", 0, records_in=3000.0, records_out=30.0, busy_s=3.0),
        sample("count", 1, records_in=1000.0, records_out=10.0, busy_s=0.5),
    ]
    count = extract(spark, rows)["count"]
    assert count["tasks"] == 2
    assert count["observed_input_rate"] == pytest.approx(600.0 + 200.0)
    assert count["observed_output_rate"] == pytest.approx(6.0 + 2.0)
    assert count["true_processing_rate"] == pytest.approx(1000.0 + 2000.0)
    assert count["true_output_rate"] == pytest.approx(10.0 + 20.0)
    assert count["busyness"] == pytest.approx((0.6 + 0.1) / 2)
    assert count["max_busyness"] == pytest.approx(0.6)
    assert count["true_rate_per_task"] == pytest.approx((800.0 / 2) / 0.35)
    assert count["selectivity"] == pytest.approx(0.01)
    assert count["records_in_per_source_record"] == pytest.approx(0.8)
    assert count["skew"] == pytest.approx(3000.0 / 2000.0)


@pytest.mark.parametrize("seed", range(3))
def test_rates_from_arrow_and_from_spark_are_the_same(spark: SparkSession, seed: int) -> None:
    """What an observation holds (Arrow) and what features hold (Spark) of the same samples, to rounding."""
    job, generator = load_job("nexmark-q1"), np.random.default_rng(seed)
    rows = [
        sample(
            operator.name,
            task,
            time_s=5.0 * (step + 1),
            records_in=generator.uniform(1.0, 5000.0),
            records_out=generator.uniform(1.0, 5000.0),
            busy_s=generator.uniform(0.1, 5.0),
            lag_records=0.0 if operator in job.sources else None,
        )
        for operator in job.operators
        for task in range(int(generator.integers(1, 4)))
        for step in range(4)
    ]
    by_spark, table = extract(spark, rows), pa.Table.from_pylist(rows, SAMPLE_SCHEMA)
    for rates in operator_rates(job, table):
        row = by_spark[rates.name]
        assert row["true_rate_per_task"] == pytest.approx(rates.true_rate_per_task, rel=1e-12)
        assert row["records_in_per_source_record"] == pytest.approx(rates.records_in_per_source_record, rel=1e-12)
    for operator in job.operators:
        tasks: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            if row["operator"] == operator.name:
                tasks[row["task"]].append(row)
        records, useful_s = (
            np.array([math.fsum(s[name] for s in of) for of in tasks.values()]) for name in ("records_in", "busy_s")
        )
        row = by_spark[operator.name]
        assert row["true_processing_rate"] == pytest.approx(true_rate(records, useful_s).sum(), rel=1e-12)
        assert row["observed_input_rate"] == pytest.approx(
            observed_rate(records, np.full(len(records), 20.0)).sum(), rel=1e-12
        )


def test_what_enters_is_related_to_what_all_sources_emit_together(spark: SparkSession) -> None:
    rows = [
        sample("persons", 0, records_in=100.0, records_out=100.0, busy_s=1.0, lag_records=0.0),
        sample("auctions", 0, records_in=300.0, records_out=300.0, busy_s=1.0, lag_records=7.0),
        sample("join", 0, records_in=200.0, records_out=1.0, busy_s=1.0),
    ]
    made = extract(spark, rows)
    assert made["join"]["records_in_per_source_record"] == pytest.approx(0.5)
    assert made["auctions"]["records_in_per_source_record"] == pytest.approx(0.75)


def test_what_enters_is_related_to_what_sources_take_in_and_not_to_what_they_pass_on(spark: SparkSession) -> None:
    """Where a source counts no input, as Flink's may, it takes in what it emits."""
    rows = [
        sample("persons", 0, records_in=100.0, records_out=90.0, busy_s=1.0, lag_records=0.0),
        sample("auctions", 0, records_in=0.0, records_out=300.0, busy_s=1.0, lag_records=7.0),
        sample("join", 0, records_in=200.0, records_out=1.0, busy_s=1.0),
    ]
    assert extract(spark, rows)["join"]["records_in_per_source_record"] == pytest.approx(0.5)


def test_what_cannot_be_known_is_null(spark: SparkSession) -> None:
    idle = extract(spark, [sample("map", 0)])["map"]
    unknown = {name for name, value in idle.items() if value is None}
    assert unknown == {f.name for f in FEATURES if f.nullable}
    assert (idle["observed_input_rate"], idle["busyness"]) == (0.0, 0.0)


def test_a_task_without_useful_time_leaves_the_sum_of_true_rates_unknown(spark: SparkSession) -> None:
    rows = [sample("map", 0, records_in=10.0, records_out=10.0, busy_s=1.0), sample("map", 1)]
    made = extract(spark, rows)["map"]
    assert made["true_processing_rate"] is None
    assert made["true_rate_per_task"] == pytest.approx((2.0 / 2) / 0.1)
    assert made["skew"] == pytest.approx(2.0)


def test_state_latency_is_weighted_by_reads(spark: SparkSession) -> None:
    rows = [
        sample("win", 0, 5.0, cache_hits=90.0, cache_misses=0.0, state_latency_s=1e-6),
        sample("win", 0, 10.0, cache_hits=0.0, cache_misses=10.0, state_latency_s=101e-6),
    ]
    made = extract(spark, rows)["win"]
    assert made["state_latency_s"] == pytest.approx(11e-6)
    assert made["cache_hit_rate"] == pytest.approx(0.9)


def test_only_settled_phases_count(spark: SparkSession) -> None:
    rows = [
        sample("map", 0, 5.0, records_in=10.0, phase="observe"),
        sample("map", 0, 10.0, records_in=20.0, phase="profile"),
        sample("map", 0, 15.0, records_in=1e9, phase="warmup"),
        sample("map", 0, 20.0, records_in=1e9, phase="cooldown"),
        sample("map", 0, 25.0, records_in=1e9, phase="ramp"),
    ]
    made = extract(spark, rows)["map"]
    assert (made["observed_s"], made["observed_input_rate"]) == (10.0, pytest.approx(3.0))


@pytest.mark.parametrize("seed", range(4))
def test_agrees_with_plain_python_on_random_samples(
    spark: SparkSession, random_samples: Callable[..., pa.Table], seed: int
) -> None:
    table = random_samples(seed)
    made = {(r["run"], r["operator"]): r.asDict() for r in features(spark.createDataFrame(table)).collect()}
    expected = features_in_python(table.to_pylist())
    assert made.keys() == expected.keys()
    for key, row in expected.items():
        for name, value in row.items():
            assert same(made[key][name], value), f"{key} {name}: Spark {made[key][name]}, Python {value}"


def test_the_same_samples_give_the_same_bits_however_they_are_partitioned(
    spark: SparkSession, random_samples: Callable[..., pa.Table]
) -> None:
    frame = spark.createDataFrame(random_samples(9, runs=3, intervals=40))
    few = features(frame.coalesce(1)).orderBy("run", "operator").toArrow()
    by_task = frame.coalesce(1).repartition(7, "run", "operator", "task")
    assert features(by_task).orderBy("run", "operator").toArrow().equals(few)


def test_a_missing_column_and_a_wrong_type_are_named(spark: SparkSession) -> None:
    frame = spark.createDataFrame(pa.Table.from_pylist([sample("a", 0)], SAMPLE_SCHEMA))
    with pytest.raises(InvalidInput, match="column 'busy_s' is missing"):
        features(frame.drop("busy_s"))
    with pytest.raises(InvalidInput, match="column 'task' must be bigint, but is string"):
        features(frame.withColumn("task", frame.task.cast("string")))


def test_a_null_where_none_is_allowed_stops_the_job(spark: SparkSession) -> None:
    rows = [sample("a", 0), {**sample("a", 0, 10.0), "busy_s": None}]
    nullable = pa.schema([f.with_nullable(True) for f in SAMPLE_SCHEMA])
    with pytest.raises(Exception, match="column 'busy_s' must not be null"):
        features(spark.createDataFrame(pa.Table.from_pylist(rows, nullable))).collect()


def same(got: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(got, float):
        return math.isclose(got, expected, rel_tol=1e-9)
    return bool(got == expected)


def features_in_python(rows: list[Row]) -> dict[tuple[str, str], Row]:
    """The features that are sums over tasks, from the definitions of `models.metrics`."""
    tasks: dict[tuple[str, str], dict[int, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row["phase"] in ("profile", "observe"):
            tasks[row["run"], row["operator"]][row["task"]].append(row)
    taken: dict[str, float] = defaultdict(float)
    for (run, operator), of_task in tasks.items():
        if operator == "bids":
            windows = [window(samples) for samples in of_task.values()]
            read = sum(w.observed_processing_rate for w in windows)
            taken[run] += read or sum(w.observed_output_rate for w in windows)
    return {key: operator_in_python(of_task, taken[key[0]]) for key, of_task in tasks.items()}


@dataclass(frozen=True)
class WindowTotals:
    """What one task did in a window of `window_s` seconds, `busy_s` of them useful."""

    window_s: float
    busy_s: float
    records_in: float
    records_out: float

    @property
    def observed_processing_rate(self) -> float:
        return observed_rate(self.records_in, self.window_s)

    @property
    def observed_output_rate(self) -> float:
        return observed_rate(self.records_out, self.window_s)

    @property
    def true_processing_rate(self) -> float | None:
        return true_rate(self.records_in, self.busy_s) if self.busy_s > 0 else None

    @property
    def true_output_rate(self) -> float | None:
        return true_rate(self.records_out, self.busy_s) if self.busy_s > 0 else None


def window(samples: list[Row]) -> WindowTotals:
    names = ("interval_s", "busy_s", "records_in", "records_out")
    return WindowTotals(*(math.fsum(s[name] for s in samples) for name in names))


def operator_in_python(of_task: dict[int, list[Row]], source_rate: float) -> Row:
    windows = [window(samples) for samples in of_task.values()]
    every = [s for samples in of_task.values() for s in samples]

    def total(*names: str) -> float:
        return math.fsum(s[name] for s in every for name in names)

    def all_or_none(rates: list[float | None]) -> float | None:
        return None if None in rates else math.fsum(r for r in rates if r is not None)

    def over(amount: float, divisor: float) -> float | None:
        return amount / divisor if divisor else None

    def mean_share(name: str) -> float:
        return math.fsum(sum(s[name] for s in of) / sum(s["interval_s"] for s in of) for of in of_task.values()) / len(
            of_task
        )

    input_rate = math.fsum(w.observed_processing_rate for w in windows)
    records_in, reads = total("records_in"), total("cache_hits", "cache_misses")
    latency = math.fsum((s["state_latency_s"] or 0.0) * (s["cache_hits"] + s["cache_misses"]) for s in every)
    return {
        "job": "q",
        "tasks": len(windows),
        "observed_s": max(w.window_s for w in windows),
        "observed_input_rate": input_rate,
        "observed_output_rate": math.fsum(w.observed_output_rate for w in windows),
        "true_processing_rate": all_or_none([w.true_processing_rate for w in windows]),
        "true_output_rate": all_or_none([w.true_output_rate for w in windows]),
        "true_rate_per_task": over(input_rate / len(windows), mean_share("busy_s")),
        "selectivity": over(total("records_out"), records_in),
        "records_in_per_source_record": over(input_rate, source_rate),
        "busyness": mean_share("busy_s"),
        "max_busyness": max(w.busy_s / w.window_s for w in windows),
        "backpressure": mean_share("backpressured_s"),
        "idleness": mean_share("idle_s"),
        "cpu_s_per_record": over(total("cpu_s"), records_in),
        "state_bytes_per_record": over(total("state_read_bytes", "state_written_bytes"), records_in),
        "bytes_out_per_record": over(total("bytes_out"), records_in),
        "cache_hit_rate": over(total("cache_hits"), reads),
        "state_latency_s": over(latency, reads),
        "skew": over(max(w.records_in for w in windows), records_in / len(windows)),
    }
