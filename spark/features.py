"""Samples -> operator features: rates, selectivity, unit costs and skew, one row for each run and operator.

Pure expressions on DataFrames: no Python runs on executors, so they need none of Sluice's code.

Notation (DS2 Table 2, StreamBed Table 1), of a task k over its window, the samples of one run in FEATURE_PHASES:
    W       elapsed time, seconds           W_u     useful (busy) time, seconds
    R_prc   records in                      R_psd   records out
    o^i     true rate per task, records/s   r^i     records into operator i per record that the sources take in

The same samples give the same features to the last bit, whatever the number of cores, as long as the samples of a task
are read in one piece (a file below `spark.sql.files.maxPartitionBytes`, 128 MiB): sums over tasks run in task order.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from models.metrics import FEATURE_PHASES
from spark.schemas import FEATURES, SAMPLES, conform

_OPERATOR: Final = ("job", "run", "operator")
_TOTALLED: Final = (
    "records_in",
    "records_out",
    "bytes_out",
    "backpressured_s",
    "idle_s",
    "cpu_s",
    "cache_hits",
    "cache_misses",
)


def features(samples: DataFrame) -> DataFrame:
    """Features of every operator of every run.

    Args:
        samples: with the schema SAMPLES; further columns and other phases are left out.

    Returns:
        One row for each (run, operator) with a sample in FEATURE_PHASES, with exactly the schema FEATURES.

    Raises:
        InvalidInput: a column is missing or has another type.
    """
    return conform(with_source_ratio(operator_features(task_totals(samples))), FEATURES)


def task_totals(samples: DataFrame) -> DataFrame:
    """Totals of each task in its window: sums over its samples of FEATURE_PHASES, one row per task.

    Columns: job, run, operator, task, window_s (W), useful_s (W_u), the columns of samples that are amounts, summed,
    state_bytes (read and written), reads (hits and misses), latency_s (seconds of all reads), timed_reads (the
    reads of samples that have a latency), is_source.
    """
    reads = F.col("cache_hits") + F.col("cache_misses")
    has_latency = F.col("state_latency_s").isNotNull()
    return (
        conform(samples, SAMPLES)
        .where(F.col("phase").isin(*FEATURE_PHASES))
        .groupBy(*_OPERATOR, "task")
        .agg(
            F.sum("interval_s").alias("window_s"),
            F.sum("busy_s").alias("useful_s"),
            *[F.sum(name).alias(name) for name in _TOTALLED],
            F.sum(F.col("state_read_bytes") + F.col("state_written_bytes")).alias("state_bytes"),
            F.sum(reads).alias("reads"),
            F.sum(F.when(has_latency, F.col("state_latency_s") * reads)).alias("latency_s"),
            F.sum(F.when(has_latency, reads)).alias("timed_reads"),
            F.bool_or(F.col("lag_records").isNotNull()).alias("is_source"),
        )
    )


def operator_features(totals: DataFrame) -> DataFrame:
    """Sums and means over the tasks of each operator, from the columns of `task_totals`.

    Columns: those of FEATURES but for records_in_per_source_record, and is_source.
    """
    in_task_order = totals.repartition(*_OPERATOR).sortWithinPartitions(*_OPERATOR, "task")
    window, useful = F.col("window_s"), F.col("useful_s")
    records_in = F.sum("records_in")
    return (
        in_task_order.groupBy(*_OPERATOR)
        .agg(
            F.count("task").alias("tasks"),
            F.max(window).alias("observed_s"),
            _sum_if_all_known(_over("records_in", window)).alias("observed_input_rate"),  # DS2 Eq. 3
            _sum_if_all_known(_over("records_out", window)).alias("observed_output_rate"),  # DS2 Eq. 4
            _sum_if_all_known(_over("records_in", useful)).alias("true_processing_rate"),  # DS2 Eq. 1, 5
            _sum_if_all_known(_over("records_out", useful)).alias("true_output_rate"),  # DS2 Eq. 2, 6
            _over(F.sum("records_out"), records_in).alias("selectivity"),
            F.avg(_over("useful_s", window)).alias("busyness"),
            F.max(_over("useful_s", window)).alias("max_busyness"),
            F.avg(_over("backpressured_s", window)).alias("backpressure"),
            F.avg(_over("idle_s", window)).alias("idleness"),
            _over(F.sum("cpu_s"), records_in).alias("cpu_s_per_record"),
            _over(F.sum("state_bytes"), records_in).alias("state_bytes_per_record"),
            _over(F.sum("bytes_out"), records_in).alias("bytes_out_per_record"),
            _over(F.sum("cache_hits"), F.sum("reads")).alias("cache_hit_rate"),
            _over(F.sum("latency_s"), F.sum("timed_reads")).alias("state_latency_s"),
            _over(F.max("records_in"), F.avg("records_in")).alias("skew"),
            F.bool_or("is_source").alias("is_source"),
        )
        # o^i, StreamBed section 5: actual input rate per task over average busyness.
        .withColumn("true_rate_per_task", _over(F.col("observed_input_rate") / F.col("tasks"), F.col("busyness")))
    )


def with_source_ratio(operators: DataFrame) -> DataFrame:
    """Add r^i: each operator's input rate over what all sources of its run take in together.

    Flink's own sources may count no input; then what they emit is what they take in.
    """
    taken = F.when(F.col("observed_input_rate") > 0, F.col("observed_input_rate")).otherwise(
        F.col("observed_output_rate")
    )
    taken = F.when(F.col("is_source"), taken)
    whole_run = Window.partitionBy("job", "run").orderBy("operator")
    whole_run = whole_run.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return operators.withColumn("source_rate", F.sum(taken).over(whole_run)).withColumn(
        "records_in_per_source_record", _over("observed_input_rate", F.col("source_rate"))
    )


def _over(amount: str | Column, divisor: Column) -> Column:
    """A quotient; null if the divisor is zero."""
    return F.try_divide(F.col(amount) if isinstance(amount, str) else amount, divisor)


def _sum_if_all_known(rate: Column) -> Column:
    """The sum over tasks; null if one of them is unknown, since a partial sum would look complete."""
    return F.when(F.count(rate) == F.count(F.lit(1)), F.sum(rate))
