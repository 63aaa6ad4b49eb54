"""Reading samples into Spark."""

from collections.abc import Sequence
from typing import Final

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from models.errors import InvalidInput
from spark.schemas import SAMPLES

_FAILED_READ: Final = "[FAILED_READ_FILE"
"""What messages of Spark's errors of this condition begin with."""


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


def fault_of_file(error: Py4JJavaError) -> InvalidInput | OSError | None:
    """The error of a file that a job could not read; None if the job failed for another reason.

    Files are read when a job runs, and what fails then comes as the JVM's own error. An IOException may pass, so it is an
    OSError; a file of another format or with other columns must be replaced.
    """
    cause = error.java_exception
    while cause is not None:
        said, inner = str(cause.getMessage()), cause.getCause()
        if said.startswith(_FAILED_READ):
            text = said.partition("] ")[2].partition("SQLSTATE")[0].strip()
            text = f"the samples cannot be read: {text} {'' if inner is None else inner.getMessage()}".strip()
            if inner is not None and is_instance_of(SparkContext._gateway, inner, "java.io.IOException"):
                return OSError(text)
            return InvalidInput(f"{text}; replace this file, or remove it")
        cause = inner
    return None
