"""Samples in the workspace: Parquet, one file per run, in Hive layout `samples/job=J/run=R/samples.parquet`.

The columns job and run are only in the path. Spark, pandas and pyarrow add them when they read the folder; if the file had
them, too, pandas and pyarrow would refuse the folder, since the types differ.
"""

import re
from collections.abc import Iterable
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from models.errors import SluiceError
from models.metrics import SAMPLE_COLUMNS
from pipelines.store.digests import digest_bytes
from pipelines.store.workspace import Missing, Workspace

_IN_PATH = ("job", "run")
_FILE = "samples.parquet"
_MEASUREMENT: Final = re.compile(r"profile|m\d{3,}|single-[\d.e+]+")
"""Names of measurements: the profile, those of the exploration by number, and single-task runs by their memory."""


def samples_key(job: str, run: str) -> str:
    return f"samples/job={job}/run={run}/{_FILE}"


def write_samples(workspace: Workspace, table: pa.Table) -> dict[str, str]:
    """Write the samples of one or more measurement runs, replacing earlier samples of these runs.

    Each run's file is written atomically. Rows keep their order, which is the order in which tasks reported.

    Args:
        table: with the columns of `models.metrics.SAMPLE_COLUMNS`.

    Returns:
        Measurement run -> SHA-256 of its file.

    Raises:
        SluiceError: the table is empty, or has no column job or run.
    """
    missing = [name for name in _IN_PATH if name not in table.column_names]
    if missing or table.num_rows == 0:
        raise SluiceError(
            f"samples must have the columns job and run, but the table of {table.num_rows} rows has only the "
            f"columns {', '.join(table.column_names)}; add job and run to every row"
        )
    digests = {}
    for pair in table.group_by(list(_IN_PATH), use_threads=False).aggregate([]).to_pylist():
        own = table.filter((pc.field("job") == pair["job"]) & (pc.field("run") == pair["run"]))
        key = samples_key(pair["job"], pair["run"])
        workspace.write_table(key, own.drop_columns(list(_IN_PATH)))
        digests[pair["run"]] = digest_bytes(workspace.read_bytes(key))
    return digests


def samples_flaw(workspace: Workspace, job: str, run: str, digest: str | None) -> str | None:
    """The fault of a measurement run's samples; None if its file has the recorded digest."""
    key = samples_key(job, run)
    try:
        found = digest_bytes(workspace.read_bytes(key))
    except Missing:
        return f"{workspace.uri(key)} does not exist"
    if found == digest:
        return None
    return f"{workspace.uri(key)} has the SHA-256 {found[:12]}..., but {(digest or 'none')[:12]}... was recorded"


def read_samples(workspace: Workspace, job: str, run: str) -> pa.Table:
    """The samples of one measurement run, with the columns job and run, in the order of the specification.

    Nothing else is checked: missing columns stay missing, and unknown ones follow at the end.
    """
    table = workspace.read_table(samples_key(job, run))
    for name, value in (("job", job), ("run", run)):
        if name not in table.column_names:
            column = pa.repeat(value, table.num_rows)
            table = table.append_column(pa.field(name, pa.string(), nullable=False), column)
    known = [c.name for c in SAMPLE_COLUMNS if c.name in table.column_names]
    return table.select([*known, *(name for name in table.column_names if name not in known)])


def runs_of(workspace: Workspace, job: str, run_id: str) -> list[str]:
    """Names of the measurement runs of a pipeline run: its name, a hyphen, and that of a measurement."""
    prefix = f"samples/job={job}"
    names = [key.removeprefix(f"{prefix}/run=").split("/")[0] for key in workspace.list(prefix)]
    return sorted(
        name
        for name in set(names)
        if name.startswith(f"{run_id}-") and _MEASUREMENT.fullmatch(name.removeprefix(f"{run_id}-"))
    )


def samples_uris(workspace: Workspace, job: str, runs: Iterable[str]) -> list[str]:
    """URIs of the files of these runs, for Spark."""
    return [workspace.uri(samples_key(job, run)) for run in runs]
