"""Scalings -> thresholds on any Spark master.

    spark-submit --master spark://HOST:7077 spark/jobs/tune_thresholds.py SCALINGS CLUSTER THRESHOLDS
    python -m spark.jobs.tune_thresholds SCALINGS CLUSTER THRESHOLDS

SCALINGS is Parquet with the columns `key` (a name) and `dataflow` (a `graph.json`, as text), CLUSTER a JSON file of
the workers, THRESHOLDS the folder to write, replaced if it exists. SCALINGS and THRESHOLDS must be reachable under the
same path by driver and executors. The driver needs Sluice installed; the executors are sent its code.
"""

import argparse
import sys
from pathlib import Path

from pydantic import ValidationError
from pyspark.errors import PySparkException

from models.cluster import Cluster
from models.errors import InvalidInput, SluiceError
from spark.schemas import conform
from spark.session import DEFAULT_MASTER, MASTER_VARIABLE, session
from spark.threshold_table import SCALINGS, thresholds


def main(arguments: list[str]) -> int:
    """Run the job; returns the exit code: 0 done, 1 failed, 2 unusable arguments or input."""
    parser = argparse.ArgumentParser(prog="tune_thresholds", description="Placement thresholds of scalings, on Spark.")
    parser.add_argument("scalings", help="Parquet file or folder of scalings")
    parser.add_argument("cluster", help="JSON file of the cluster")
    parser.add_argument("thresholds", help="folder to write")
    parser.add_argument("--seed", type=int, default=0, help="of ties in the search")
    parser.add_argument("--time-limit", type=float, default=60.0, metavar="S", help="seconds for each scaling")
    parser.add_argument("--master", help=f"Spark master URL; else {MASTER_VARIABLE}, else {DEFAULT_MASTER}")
    given = parser.parse_args(arguments)
    try:
        cluster = _cluster(Path(given.cluster))
        spark = session(given.master)
        scalings = conform(spark.read.parquet(given.scalings), SCALINGS)
        number = max(1, scalings.count())
        made = thresholds(scalings.repartition(number, "key"), cluster, given.seed, given.time_limit)
        made.repartition(1).write.mode("overwrite").parquet(given.thresholds)
        spark.stop()
    except InvalidInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (SluiceError, PySparkException) as error:
        print(f"failed: {str(error).splitlines()[0]}", file=sys.stderr)
        return 1
    return 0


def _cluster(path: Path) -> Cluster:
    try:
        return Cluster.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        first = str(error).splitlines()[0]
        raise InvalidInput(f"{path} must be a JSON file of a cluster, but cannot be used: {first}") from None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
