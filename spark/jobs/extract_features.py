"""Samples -> features on any Spark master.

    spark-submit --master spark://HOST:7077 spark/jobs/extract_features.py SAMPLES FEATURES
    python -m spark.jobs.extract_features SAMPLES FEATURES

SAMPLES is a Parquet file or folder (for example the workspace's `samples/job=J`), FEATURES the folder to write: one
Parquet file, replaced if it exists. Both must be reachable under the same path by driver and executors. The driver
needs Sluice installed; the executors do not.
"""

import argparse
import sys

from pyspark.errors import PySparkException

from models.errors import InvalidInput, SluiceError
from spark.features import features
from spark.samples import read_samples
from spark.session import DEFAULT_MASTER, MASTER_VARIABLE, session


def main(arguments: list[str]) -> int:
    """Run the job; returns the exit code: 0 done, 1 failed, 2 unusable arguments or input."""
    parser = argparse.ArgumentParser(prog="extract_features", description="Operator features from samples, on Spark.")
    parser.add_argument("samples", help="Parquet file or folder of samples")
    parser.add_argument("features", help="folder to write")
    parser.add_argument("--master", help=f"Spark master URL; else {MASTER_VARIABLE}, else {DEFAULT_MASTER}")
    given = parser.parse_args(arguments)
    try:
        spark = session(given.master)
        made = features(read_samples(spark, [given.samples]))
        made.coalesce(1).write.mode("overwrite").parquet(given.features)
        spark.stop()
    except InvalidInput as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (SluiceError, PySparkException) as error:
        print(f"failed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
