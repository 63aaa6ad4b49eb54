"""Reading samples into Spark."""

from collections.abc import Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from models.errors import InvalidInput
from spark.schemas import SAMPLES


def read_samples(spark: SparkSession, uris: Sequence[str]) -> DataFrame:
    """Samples from Parquet files or folders, with the columns of SAMPLES.

    If a path contains `/job=J/run=R/`, the columns job and run are taken from it, always as text.

    Raises:
        InvalidInput: no URI is given, or one does not exist.
    """
    if not uris:
        raise InvalidInput("there are no samples to read; measure first")
    root, in_path, _ = uris[0].partition("/job=")
    reader = spark.read.schema(SAMPLES)
    if in_path:
        reader = reader.option("basePath", root)
    try:
        return reader.parquet(*uris)
    except AnalysisException as error:
        raise InvalidInput(f"the samples cannot be read: {str(error).splitlines()[0]}") from None
