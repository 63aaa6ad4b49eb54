"""A Python function over many items, on any Spark master: for work that takes seconds an item and needs no tables.

The function is the caller's: Spark pickles it by the name of its module, so executors are sent the packages it needs.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Final, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from models.errors import SluiceError
from spark.code import ship_code

Item = TypeVar("Item")
Result = TypeVar("Result")

ITEMS_PER_CORE: Final = 4
"""Items that are computed before results are handed on, for each core: what a killed driver may lose."""


def map_each(
    spark: SparkSession, function: Callable[[Item], Result], items: Sequence[Item], packages: Sequence[ModuleType]
) -> Iterator[Result]:
    """The results for the items, in their order, some at a time.

    Args:
        function: importable from one of the packages; it, items and results are pickled.
        packages: what executors may import, beside what is installed where they run.

    Raises:
        SluiceError: what `function` raised, of the same type; or the Spark job failed.
    """
    context = spark.sparkContext
    ship_code(context, packages)
    size = ITEMS_PER_CORE * context.defaultParallelism
    for first in range(0, len(items), size):
        part = items[first : first + size]
        try:
            results = context.parallelize(part, len(part)).map(partial(_attempt, function)).collect()
        except PySparkException as error:
            raise SluiceError(f"Spark job failed: {reason_of(error)}") from None
        for result in results:
            if isinstance(result, SluiceError):
                raise result
            yield result


def reason_of(error: PySparkException) -> str:
    """The first and the last line of what Spark says, which is often very long."""
    said = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{said[0][:300]} {said[-1][:300]}"


def _attempt(function: Callable[[Item], Result], item: Item) -> Result | SluiceError:
    """A refusal is a result: Spark would try again, and turn it into a text."""
    try:
        return function(item)
    except SluiceError as error:
        return error
