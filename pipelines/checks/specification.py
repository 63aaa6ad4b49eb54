"""Specifications of tables, built from the columns in `models.metrics`."""

from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa

from models.dataflow import MOST_TASKS
from models.metrics import (
    FEATURE_COLUMNS,
    FEATURE_EVIDENCE,
    FEATURE_KEY,
    OBSERVATION_COLUMNS,
    OBSERVATION_EVIDENCE,
    OBSERVATION_KEY,
    SAMPLE_COLUMNS,
    SAMPLE_EVIDENCE,
    SAMPLE_KEY,
    Column,
    ColumnType,
)
from pipelines.run import PipelineRun

_ARROW_TYPES: Final = {ColumnType.STRING: pa.string(), ColumnType.LONG: pa.int64(), ColumnType.DOUBLE: pa.float64()}


@dataclass(frozen=True)
class Specification:
    """The specification of a table: its columns, and the evidence derived from them."""

    name: str
    columns: tuple[Column, ...]
    evidence: tuple[Column, ...]
    key: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema of the columns; types only, since Arrow does not preserve nullability."""
        return pa.schema([(c.name, _ARROW_TYPES[c.type]) for c in self.columns])


SAMPLES: Final = Specification("samples", SAMPLE_COLUMNS, SAMPLE_EVIDENCE, SAMPLE_KEY)
FEATURES: Final = Specification("features", FEATURE_COLUMNS, FEATURE_EVIDENCE, FEATURE_KEY)


def observations_of(run: PipelineRun) -> Specification:
    """Bounds of a run's observations: a task slot for each scaled operator, and at most the slots allowed for measuring."""
    most = MOST_TASKS if run.request.testbed == "recorded" else run.request.max_task_slots
    fewest = len(run.job.scaled_operators)
    columns = tuple(
        replace(c, minimum=fewest, maximum=most) if c.name == "task_slots" else c for c in OBSERVATION_COLUMNS
    )
    return Specification("observations", columns, OBSERVATION_EVIDENCE, OBSERVATION_KEY)
