"""The extraction of `spark.features` in pandas and in polars, for `extraction.py`: the same columns and definitions, in the
idiom of each library."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from models.metrics import FEATURE_COLUMNS, FEATURE_PHASES

COLUMNS: Final = [c.name for c in FEATURE_COLUMNS]
OPERATOR: Final = ["job", "run", "operator"]
SUMMED: Final = [
    *("interval_s", "busy_s", "records_in", "records_out", "bytes_out", "backpressured_s", "idle_s", "cpu_s"),
    *("cache_hits", "cache_misses", "state_bytes", "reads", "latency_s", "timed_reads"),
]
READ: Final = [
    *("operator", "task", "phase", "interval_s", "records_in", "records_out", "bytes_out", "busy_s"),
    *("backpressured_s", "idle_s", "cpu_s", "state_read_bytes", "state_written_bytes", "cache_hits", "cache_misses"),
    *("state_latency_s", "lag_records"),
]


def with_spark(folder: Path) -> tuple[Callable[[], pa.Table], Callable[[], None]]:
    """The extraction, ready to run, and what ends the engine."""
    from spark.features import features
    from spark.samples import read_samples
    from spark.session import session

    spark = session()
    return (lambda: features(read_samples(spark, [str(folder)])).toArrow()), spark.stop


def with_pandas(folder: Path) -> tuple[Callable[[], pa.Table], Callable[[], None]]:
    import pandas as pd

    def extract() -> pa.Table:
        frame = pd.read_parquet(folder, columns=[*READ, "job", "run"], filters=[("phase", "in", list(FEATURE_PHASES))])
        reads = frame["cache_hits"] + frame["cache_misses"]
        timed = frame["state_latency_s"].notna()
        frame["state_bytes"] = frame["state_read_bytes"] + frame["state_written_bytes"]
        frame["reads"] = reads
        frame["latency_s"] = frame["state_latency_s"] * reads
        frame["timed_reads"] = reads.where(timed)
        frame["is_source"] = frame["lag_records"].notna()
        by_task = frame.groupby([*OPERATOR, "task"], observed=True, sort=False)
        tasks = by_task[SUMMED].sum()
        tasks["is_source"] = by_task["is_source"].any()
        return pa.Table.from_pandas(_operators_in_pandas(tasks.reset_index())[COLUMNS], preserve_index=False)

    return extract, lambda: None


def _operators_in_pandas(tasks: Any) -> Any:
    window, useful = tasks["interval_s"], tasks["busy_s"].where(tasks["busy_s"] > 0)
    for name, amount, divisor in (
        ("input_rate", "records_in", window),
        ("output_rate", "records_out", window),
        ("true_in", "records_in", useful),
        ("true_out", "records_out", useful),
        ("busy", "busy_s", window),
        ("waiting", "backpressured_s", window),
        ("idle", "idle_s", window),
    ):
        tasks[name] = tasks[amount] / divisor
    grouped = tasks.groupby(OPERATOR, observed=True)
    total, count = grouped.sum(numeric_only=True), grouped.size()
    made = total[[]].copy()
    made["tasks"] = count
    made["observed_s"] = grouped["interval_s"].max()
    made["observed_input_rate"], made["observed_output_rate"] = total["input_rate"], total["output_rate"]
    all_known = grouped["true_in"].count() == count
    made["true_processing_rate"] = total["true_in"].where(all_known)
    made["true_output_rate"] = total["true_out"].where(all_known)
    made["busyness"], made["max_busyness"] = total["busy"] / count, grouped["busy"].max()
    made["backpressure"], made["idleness"] = total["waiting"] / count, total["idle"] / count
    made["true_rate_per_task"] = made["observed_input_rate"] / count / made["busyness"].where(made["busyness"] > 0)
    received = total["records_in"].where(total["records_in"] > 0)
    made["selectivity"] = total["records_out"] / received
    made["cpu_s_per_record"] = total["cpu_s"] / received
    made["state_bytes_per_record"] = total["state_bytes"] / received
    made["bytes_out_per_record"] = total["bytes_out"] / received
    made["cache_hit_rate"] = total["cache_hits"] / total["reads"].where(total["reads"] > 0)
    made["state_latency_s"] = total["latency_s"] / total["timed_reads"].where(total["timed_reads"] > 0)
    made["skew"] = grouped["records_in"].max() / (received / count)
    emitted = made["observed_output_rate"].where(grouped["is_source"].any()).groupby(["job", "run"], observed=True)
    source_rate = emitted.transform("sum")
    made["records_in_per_source_record"] = made["observed_input_rate"] / source_rate.where(source_rate > 0)
    return made.reset_index().astype(dict.fromkeys(OPERATOR, str))


def with_polars(folder: Path) -> tuple[Callable[[], pa.Table], Callable[[], None]]:
    import polars as pl

    def over(amount: Any, divisor: Any) -> Any:
        return pl.when(divisor > 0).then(amount / divisor)

    def extract() -> pa.Table:
        c, reads = pl.col, pl.col("cache_hits") + pl.col("cache_misses")
        timed = c("state_latency_s").is_not_null()
        tasks = (
            pl.scan_parquet(folder / "**" / "*.parquet", hive_partitioning=True)
            .filter(c("phase").is_in(FEATURE_PHASES))
            .with_columns(
                state_bytes=c("state_read_bytes") + c("state_written_bytes"),
                reads=reads,
                latency_s=pl.when(timed).then(c("state_latency_s") * reads),
                timed_reads=pl.when(timed).then(reads),
            )
            .group_by(*OPERATOR, "task")
            .agg(c(*SUMMED).sum(), is_source=c("lag_records").is_not_null().any())
        )
        window, useful, received = c("interval_s"), c("busy_s"), c("records_in").sum()
        true_in, true_out = over(c("records_in"), useful), over(c("records_out"), useful)
        made = (
            tasks.group_by(OPERATOR)
            .agg(
                tasks=pl.len().cast(pl.Int64),
                observed_s=window.max(),
                observed_input_rate=(c("records_in") / window).sum(),
                observed_output_rate=(c("records_out") / window).sum(),
                true_processing_rate=pl.when(true_in.null_count() == 0).then(true_in.sum()),
                true_output_rate=pl.when(true_out.null_count() == 0).then(true_out.sum()),
                selectivity=over(c("records_out").sum(), received),
                busyness=(useful / window).mean(),
                max_busyness=(useful / window).max(),
                backpressure=(c("backpressured_s") / window).mean(),
                idleness=(c("idle_s") / window).mean(),
                cpu_s_per_record=over(c("cpu_s").sum(), received),
                state_bytes_per_record=over(c("state_bytes").sum(), received),
                bytes_out_per_record=over(c("bytes_out").sum(), received),
                cache_hit_rate=over(c("cache_hits").sum(), c("reads").sum()),
                state_latency_s=over(c("latency_s").sum(), c("timed_reads").sum()),
                skew=over(c("records_in").max(), c("records_in").mean()),
                is_source=c("is_source").any(),
            )
            .with_columns(
                true_rate_per_task=over(c("observed_input_rate") / c("tasks"), c("busyness")),
                emitted=pl.when(c("is_source")).then(c("observed_output_rate")).sum().over("job", "run"),
            )
            .with_columns(records_in_per_source_record=over(c("observed_input_rate"), c("emitted")))
            .select(COLUMNS)
        )
        return made.collect(engine="streaming").to_arrow()

    return extract, lambda: None


ENGINES: Final = {"spark": with_spark, "polars": with_polars, "pandas": with_pandas}
