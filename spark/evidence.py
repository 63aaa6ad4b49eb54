"""The columns of `models.metrics.SAMPLE_EVIDENCE` on Spark, for samples that do not fit one machine."""

from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType


def sample_evidence(samples: DataFrame) -> DataFrame:
    """Samples with what is derived from them to be checked with them.

    Args:
        samples: with the columns of SAMPLES, as read from files: a row's place in its file is the order in which it
            was reported.
    """
    numbers = [f.name for f in samples.schema.fields if isinstance(f.dataType, DoubleType)]
    task = Window.partitionBy("run", "operator", "task").orderBy("_place")
    interval = F.when(F.col("interval_s") > 0, F.col("interval_s"))
    accounted = F.col("busy_s") + F.col("backpressured_s") + F.col("idle_s")
    return (
        samples.withColumn("_place", F.monotonically_increasing_id())
        .withColumns(
            {
                "busy_share": F.try_divide("busy_s", interval),
                "backpressured_share": F.try_divide("backpressured_s", interval),
                "idle_share": F.try_divide("idle_s", interval),
                "accounted_share": F.try_divide(accounted, interval),
                "step_s": F.col("time_s") - F.lag("time_s").over(task),
                "not_finite": reduce(add, [_not_finite(name) for name in numbers]),
            }
        )
        .drop("_place")
    )


def _not_finite(name: str) -> Column:
    value = F.col(name)
    return F.coalesce((F.isnan(value) | (F.abs(value) == float("inf"))).cast("long"), F.lit(0))
