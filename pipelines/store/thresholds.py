"""The storage of threshold tables, and the lookup of a scaling's row.

Thresholds depend on the tasks and on the workers, but hardly on the rate: a higher rate multiplies every load, L_min and
L_max by one factor, and the cost (CAPSys Eq. 4) stays. Only the set of dimensions that can become a bottleneck depends on
it. So a table holds, for one job with its unit costs on one cluster, a row for each combination of parallelism, memory and
these dimensions, and serves every rate that leads to it.

A table is a folder with a file for each row, named by its key. So writers need no lock: each adds its own files, and two
that tune the same scaling write the same row. A replan reads only its row.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
from pydantic import Field, ValidationError

from models.cluster import Cluster
from models.placement import Tuning
from models.placement.problem import idle_dimensions
from models.plan.parts import CostVector, Placement
from models.planning.inputs import MeasuredOperators
from models.planning.parallelism import Scaling
from models.schema import Format, NonNegative, Positive, PositiveInt
from pipelines.store.digests import digest
from pipelines.store.workspace import Damaged, Missing, Workspace

FOLDER: Final = "thresholds"
VERSION: Final = "2"
"""Version of the tuning: increase it when it finds better thresholds, so that tables are made again."""
_logger = logging.getLogger(__name__)


class ThresholdRow(Format):
    """The thresholds of one scaling."""

    key: str = Field(description="Digest of parallelism, memory, and the dimensions that cannot become a bottleneck.")
    rate: Positive = Field(description="A rate that needs this scaling, records/s.")
    parallelism: dict[str, PositiveInt]
    memory_mb: NonNegative = Field(description="Memory of one task, MiB.")
    total_slots: PositiveInt = Field(description="Tasks of all operators, sources included.")
    status: str = Field(description="optimal or feasible; infeasible or failed without thresholds.")
    message: str | None = Field(None, description="The error, if there are no thresholds.")
    thresholds: CostVector | None = None
    seconds: NonNegative = Field(description="Duration of the tuning.")
    tuning: Tuning | None = Field(None, description="The whole result of the tuning, with its placement.")

    @property
    def placement(self) -> Placement | None:
        """The placement that meets the thresholds."""
        return None if self.tuning is None else self.tuning.placement


SCHEMA: Final = pa.schema(
    [
        ("key", pa.string()),
        ("rate", pa.float64()),
        ("parallelism", pa.string()),
        ("memory_mb", pa.float64()),
        ("total_slots", pa.int64()),
        ("status", pa.string()),
        ("message", pa.string()),
        ("cpu", pa.float64()),
        ("io", pa.float64()),
        ("net", pa.float64()),
        ("placement", pa.string()),
        ("seconds", pa.float64()),
        ("tuning", pa.string()),
        ("digest", pa.string()),
    ]
)
"""Schema of each file; parallelism, placement and tuning are JSON, the digest is that of the rest of the row."""


def table_key(operators: MeasuredOperators, cluster: Cluster) -> str:
    """Workspace key of the table's folder: the job, and a digest of all inputs of its rows except the scaling."""
    made_from = {
        "version": VERSION,
        "job": operators.job,
        "cluster": cluster,
        "unit_costs": dict(operators.unit_costs),
        "records_in_per_source_record": dict(operators.records_in_per_source_record),
    }
    return f"{FOLDER}/{operators.job.name}/{digest(made_from)[:16]}"


def scaling_key(scaling: Scaling, cluster: Cluster) -> str:
    """Key of a scaling: a digest of its tasks, the memory of each, and the dimensions that cannot become a bottleneck at its
    rate."""
    tasks = {"parallelism": scaling.parallelism, "memory_mb": [o.memory_mb for o in scaling.dataflow.operators]}
    return digest({**tasks, "left_out": sorted(idle_dimensions(scaling.dataflow, cluster))})


def read_rows(workspace: Workspace, table: str) -> dict[str, ThresholdRow]:
    """The rows of a table by their keys; empty if there is no table. A damaged row is logged and left out."""
    read = (_read_row(workspace, key) for key in workspace.list(table))
    return {row.key: row for row in read if row is not None}


def add_rows(workspace: Workspace, table: str, rows: Iterable[ThresholdRow]) -> None:
    """Add rows to a table, each atomically; others may do so at the same time.

    A row replaces the one with its key, unless only the old one has thresholds.
    """
    for row in rows:
        key = _row_key(table, row.key)
        if row.thresholds is None and (there := _read_row(workspace, key)) and there.thresholds is not None:
            continue
        workspace.write_table(key, pa.Table.from_pylist([_to_file(row)], schema=SCHEMA))


def stored_tuning(
    workspace: Workspace, operators: MeasuredOperators, scaling: Scaling, cluster: Cluster
) -> Tuning | None:
    """The tuning of a scaling in the job's table; None without a row, or without thresholds in it.

    The loads stated for dimensions that the tuning left out are those at the scaling's own rate.
    """
    row = _read_row(workspace, _row_key(table_key(operators, cluster), scaling_key(scaling, cluster)))
    if row is None or row.tuning is None:
        return None
    return row.tuning.model_copy(update={"left_out": idle_dimensions(scaling.dataflow, cluster)})


def _row_key(table: str, row: str) -> str:
    return f"{table}/{row}.parquet"


def _read_row(workspace: Workspace, key: str) -> ThresholdRow | None:
    try:
        rows = workspace.read_table(key).to_pylist()
    except Missing:
        return None
    except Damaged as error:
        _logger.warning("%s; its thresholds are tuned again", error)
        return None
    if len(rows) != 1:
        _logger.warning(
            "%s holds %d rows instead of one; its thresholds are tuned again", workspace.uri(key), len(rows)
        )
        return None
    return _from_file(rows[0], workspace.uri(key))


def _to_file(row: ThresholdRow) -> dict[str, Any]:
    flat = {
        "key": row.key,
        "rate": row.rate,
        "parallelism": json.dumps(row.parallelism),
        "memory_mb": row.memory_mb,
        "total_slots": row.total_slots,
        "status": row.status,
        "message": row.message,
        **(dict.fromkeys(("cpu", "io", "net")) if row.thresholds is None else row.thresholds.model_dump()),
        "placement": None if row.placement is None else json.dumps(row.placement),
        "seconds": row.seconds,
        "tuning": None if row.tuning is None else row.tuning.model_dump_json(by_alias=True),
    }
    return {**flat, "digest": digest(flat)}


def _from_file(row: Mapping[str, Any], origin: str) -> ThresholdRow | None:
    flat = {name: value for name, value in row.items() if name != "digest"}
    try:
        if digest(flat) != row.get("digest"):
            raise ValueError("its digest does not match its content")
        tuning = None if flat["tuning"] is None else Tuning.model_validate_json(flat["tuning"])
        return ThresholdRow(
            **{
                name: flat[name] for name in ("key", "rate", "memory_mb", "total_slots", "status", "message", "seconds")
            },
            parallelism=json.loads(flat["parallelism"]),
            thresholds=None if tuning is None else tuning.thresholds,
            tuning=tuning,
        )
    except (ValidationError, ValueError, TypeError, KeyError) as error:
        _logger.warning("%s is damaged (%s); its thresholds are tuned again", origin, str(error)[:200])
        return None
