"""Thresholds for many scalings at once (CAPSys section 5.2: "offline and in parallel"), on any Spark master.

A row is one scaling of a job: its dataflow as JSON. Each becomes a partition of its own, since a tuning takes from
milliseconds to a minute, and an executor tunes it with `models.placement.tune`. So executors run Python with numpy,
numba, networkx, pydantic, pyarrow and scipy; Sluice's own code is sent to them.
"""

import time
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

import models
import spark
from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import Infeasible, SluiceError
from models.placement import tune
from spark.code import ship_code
from spark.mapping import reason_of

PACKAGES: Final = (models, spark)
"""What an executor may import; `pipelines` and `testbeds` stay with the driver."""
INFEASIBLE: Final = "infeasible"
FAILED: Final = "failed"
"""Statuses besides those of a tuning (`optimal`, `feasible`, `unknown`): no placement exists; none was found."""

SCALINGS: Final = StructType([StructField(name, StringType(), False) for name in ("key", "dataflow")])
"""A name for the scaling, and its dataflow as JSON."""
THRESHOLDS: Final = StructType(
    [
        StructField("key", StringType(), False),
        StructField("status", StringType(), False),
        StructField("message", StringType()),
        *(StructField(d, DoubleType()) for d in ("cpu", "io", "net")),
        StructField("seconds", DoubleType(), False),
        StructField("tuning", StringType()),
    ]
)
"""Status; why there is no tuning, in words; the thresholds; the effort; the whole tuning as JSON."""
_ARROW: Final = pa.schema(
    [
        pa.field(f.name, pa.float64() if isinstance(f.dataType, DoubleType) else pa.string(), f.nullable)
        for f in THRESHOLDS.fields
    ]
)


def tune_scalings(
    spark: SparkSession, cluster: Cluster, dataflows: Mapping[str, Dataflow], *, seed: int, time_limit_s: float
) -> pa.Table:
    """The thresholds of each dataflow on the cluster, as THRESHOLDS, in any order.

    Args:
        time_limit_s: of each scaling.

    Raises:
        SluiceError: the Spark job failed.
    """
    rows = [(key, dataflow.model_dump_json(by_alias=True)) for key, dataflow in dataflows.items()]
    try:
        distributed = spark.sparkContext.parallelize(rows, max(1, len(rows)))
        return thresholds(spark.createDataFrame(distributed, SCALINGS), cluster, seed, time_limit_s).toArrow()
    except PySparkException as error:
        raise SluiceError(f"Spark job failed while tuning the scalings: {reason_of(error)}") from None


def thresholds(scalings: DataFrame, cluster: Cluster, seed: int, time_limit_s: float) -> DataFrame:
    """SCALINGS -> THRESHOLDS, partition by partition."""
    ship_code(scalings.sparkSession.sparkContext, PACKAGES)
    work = partial(_tune_batches, cluster=cluster.model_dump_json(), seed=seed, time_limit_s=time_limit_s)
    return scalings.mapInArrow(work, THRESHOLDS)


def _tune_batches(
    batches: Iterator[pa.RecordBatch], cluster: str, seed: int, time_limit_s: float
) -> Iterator[pa.RecordBatch]:
    workers = Cluster.model_validate_json(cluster)
    for batch in batches:
        rows = [_tune_row(row, workers, seed, time_limit_s) for row in batch.to_pylist()]
        yield pa.RecordBatch.from_pylist(rows, schema=_ARROW)


def _tune_row(row: Mapping[str, str], cluster: Cluster, seed: int, time_limit_s: float) -> dict[str, Any]:
    began = time.monotonic()
    try:
        dataflow = Dataflow.model_validate_json(row["dataflow"])
        tuning = tune(dataflow, cluster, seed=seed, clock=time.monotonic, time_limit_s=time_limit_s)
    except SluiceError as error:
        status = INFEASIBLE if isinstance(error, Infeasible) else FAILED
        nothing = dict.fromkeys(("cpu", "io", "net", "tuning"))
        failure = {"status": status, "message": str(error), "seconds": time.monotonic() - began}
        return {"key": row["key"], **nothing, **failure}
    return {
        "key": row["key"],
        "status": tuning.status,
        "message": None,
        **tuning.thresholds.model_dump(),
        "seconds": time.monotonic() - began,
        "tuning": tuning.model_dump_json(by_alias=True),
    }
