"""What the files of jobs and clusters hold: a dataflow or workers, and how they are operated; or a program.

A program is what Flink runs: a SQL script or a jar. Its operators are read from Flink's plan, not declared.
"""

from typing import Any, Final, Literal

from pydantic import ConfigDict, Field, model_validator

from flink_client.address import FlinkAddress
from models.cluster import Cluster
from models.job import Job
from models.schema import SCHEMA_VERSION, Format, Name
from pipelines.inputs.operations import Operations
from pipelines.keys.stream import RecordedStream


class RecordedTable(Format):
    """A recorded file that a table of a script is replayed from."""

    file: str = Field(
        min_length=1, description="Beside this file or an absolute path; .jsonl, .json, .ndjson, .csv or .parquet."
    )
    time_column: str | None = Field(
        None,
        min_length=1,
        description="Column of event time, a TIMESTAMP(3) or a BIGINT of epoch milliseconds; it is re-based to the time "
        "of emission. If absent, the column of the table's watermark.",
    )
    header_lines: int = Field(0, ge=0, description="Lines at the beginning of the file to leave out.")


_RECORDED: Final[Any] = Field(
    default_factory=dict,
    exclude=True,
    description="Recorded streams by the operator that they are hash-partitioned to, which say exactly what its tasks get; "
    "several for several inputs, recorded over the same time.",
)


class JobFile(Job):
    """A job of the catalogue: its dataflow, and how it is operated."""

    # `operations` and `recorded` are never written, and so are in no digest of the job: its measurements do not depend on
    # them. What depends on a recorded stream names its digest.

    model_config = ConfigDict(title="Job")

    operations: Operations | None = Field(
        None,
        exclude=True,
        description="When it is planned or measured again, and who may approve models and apply plans.",
    )
    recorded: dict[Name, tuple[RecordedStream, ...]] = _RECORDED


class ClusterFile(Cluster):
    """A cluster of the catalogue: its workers, and where it runs if it does."""

    model_config = ConfigDict(title="Cluster")

    flink: FlinkAddress | None = Field(None, exclude=True, description="If it runs already, and is to be measured on.")


def operations_of(job: Job) -> Operations:
    """What a job's file says; the defaults where it says nothing, or the job is not from a file."""
    return (job.operations if isinstance(job, JobFile) else None) or Operations()


class ProgramFile(Format):
    """A file in place of a job's, for `sluice plan --testbed flink`."""

    model_config = ConfigDict(title="Program")

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    name: Name = Field(description="Of the job.")
    description: str = Field("", description="What it computes, in a sentence or two.")
    sql: str | None = Field(None, min_length=1, description="SQL script, beside this file or an absolute path.")
    tables: dict[str, RecordedTable] = Field(
        default_factory=dict, description="Tables of the script that recorded files stand in for, by name."
    )
    keep_sinks: bool = Field(
        False, description="Whether the script's INSERTs write to the tables that it names; else rows are discarded."
    )
    jar: str | None = Field(None, min_length=1, description="Jar, beside this file or an absolute path.")
    entry_class: str | None = Field(None, min_length=1, description="Class of the jar whose main method makes the job.")
    arguments: tuple[str, ...] = Field((), description="Of the main method.")
    recorded: dict[Name, tuple[RecordedStream, ...]] = _RECORDED

    @model_validator(mode="after")
    def _check(self) -> "ProgramFile":
        if (self.sql is None) == (self.jar is None):
            raise ValueError(
                f"exactly one of 'sql' and 'jar' must be given, but {'both are' if self.sql else 'none is'}"
            )
        if (self.jar is None) != (self.entry_class is None):
            raise ValueError("'entry_class' must be given for a jar, and only there")
        if self.jar is not None and (self.tables or self.keep_sinks):
            raise ValueError("'tables' and 'keep_sinks' are of a script; a jar's sources are made with sluice.Rated")
        if self.sql is not None and self.arguments:
            raise ValueError("'arguments' are of a jar's main method; leave them out for a script")
        return self
