"""The files of jobs and clusters: a dataflow or workers, and their operation; or a program.

A program is a SQL script or a jar for Flink. Its operators are read from Flink's plan, not declared.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, model_validator

from flink_client.address import FlinkAddress
from models.cluster import Cluster
from models.job import Job
from models.schema import SCHEMA_VERSION, Format, Name
from pipelines.inputs.operations.operations import Operations
from pipelines.keys.stream import RecordedStream


class RecordedTable(Format):
    """A recorded file that replaces a table of a script."""

    file: str = Field(
        min_length=1, description="Path, relative to this file or absolute; .jsonl, .json, .ndjson, .csv or .parquet."
    )
    time_column: str | None = Field(
        None,
        min_length=1,
        description="Column of event time, a TIMESTAMP(3) or a BIGINT of epoch milliseconds; it is re-based to the time "
        "of emission. If absent, the column of the table's watermark.",
    )
    header_lines: int = Field(0, ge=0, description="Lines at the beginning of the file to skip.")


class FedTopicFile(Format):
    """A topic that a program reads, and what Sluice writes to it: a recording, or records that are made up."""

    partitions: int = Field(ge=1, le=10_000, description="Partitions, as many as in production.")
    source: str | None = Field(
        None,
        min_length=1,
        description="Source that reads it, as Flink names it, or its table. Needed if the program has several sources and none "
        "has the topic's name.",
    )
    recording: str | None = Field(
        None,
        min_length=1,
        description="Recorded topic: Parquet by 'sluice record', JSON lines, or Parquet whose rows become JSON. Path relative "
        "to this file, or absolute.",
    )
    time: str | None = Field(
        None,
        min_length=1,
        description="Field of the recording with the event time; a file by 'sluice record' needs none.",
    )
    key: str | None = Field(
        None, min_length=1, description="Field of the recording with the key; absent: the recorded key, or none."
    )
    keys: int = Field(1000, ge=0, description="Number of keys of made-up records; 0: none.")
    exponent: float = Field(0.0, ge=0, lt=100, description="Of the Zipf law that their keys are drawn from; 0: evenly.")
    value_bytes: int = Field(100, ge=0, description="Least length of their values, bytes.")
    share: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        1.0,
        description="Weight of this topic in the rate, where records are made up; recorded topics have their records.",
    )


_RECORDED: Final[Any] = Field(
    default_factory=dict,
    exclude=True,
    description="Recorded streams by the operator that they are hash-partitioned to, for the exact shares of its tasks; "
    "one for each of its inputs, recorded over the same time.",
)


class JobFile(Job):
    """A job of the catalogue: its dataflow, and how it is operated."""

    # `operations`, `recorded` and `brokers` are never written, and so are in no digest: measurements and plans do not depend
    # on them. What is made from a recorded stream names its digest, and partitions that were read are in `max_parallelism`.

    model_config = ConfigDict(title="Job")

    operations: Operations | None = Field(
        None,
        exclude=True,
        description="When the job is planned or measured again, and who may approve models and apply plans.",
    )
    recorded: dict[str, tuple[RecordedStream, ...]] = _RECORDED
    brokers: str | None = Field(
        None,
        exclude=True,
        min_length=1,
        description="HOST:PORT of Kafka brokers, or connection:NAME, that plans ask for the partitions of the sources' "
        "`topics`.",
    )


class ClusterFile(Cluster):
    """A cluster of the catalogue: its workers and, if it is running, its address."""

    model_config = ConfigDict(title="Cluster")

    flink: FlinkAddress | None = Field(
        None, exclude=True, description="Address of the cluster, if it is running and can be measured on."
    )


def operations_of(job: Job) -> Operations:
    """The operations in a job's file; the defaults if it has none, or the job is not from a file."""
    return (job.operations if isinstance(job, JobFile) else None) or Operations()


class ProgramFile(Format):
    """A file in place of a job's, for `sluice plan --testbed flink`."""

    model_config = ConfigDict(title="Program")

    schema_version: Literal[1] = Field(SCHEMA_VERSION, description="Version of this format.")
    name: Name = Field(description="Name of the job.")
    description: str = Field("", description="What it computes, in a sentence or two.")
    sql: str | None = Field(None, min_length=1, description="SQL script; path relative to this file, or absolute.")
    tables: dict[str, RecordedTable] = Field(
        default_factory=dict,
        description="Tables of the script to replace by recorded files, by name; all recorded over the same time.",
    )
    keep_sinks: bool = Field(
        False, description="Whether the script's INSERTs write to its sink tables; otherwise rows are discarded."
    )
    jar: str | None = Field(None, min_length=1, description="Jar; path relative to this file, or absolute.")
    entry_class: str | None = Field(
        None, min_length=1, description="Class in the jar whose main method builds the job."
    )
    arguments: tuple[str, ...] = Field(
        (), description="Arguments of the main method. With 'topics', '{kafka}' stands for the address of the brokers."
    )
    topics: dict[str, FedTopicFile] = Field(
        default_factory=dict,
        exclude_if=lambda topics: not topics,
        description="Topics that the program reads, by name; Sluice creates and feeds them with '--feed kafka'.",
    )
    brokers: str | None = Field(
        None,
        exclude_if=lambda brokers: brokers is None,
        min_length=1,
        description="HOST:PORT of Kafka brokers on which the topics are created, and removed again; absent: a broker that "
        "Sluice starts on this machine.",
    )
    recorded: dict[str, tuple[RecordedStream, ...]] = _RECORDED

    @model_validator(mode="after")
    def _check(self) -> "ProgramFile":
        if (self.sql is None) == (self.jar is None):
            raise ValueError(
                f"exactly one of 'sql' and 'jar' must be given, but {'both are' if self.sql else 'none is'}"
            )
        if (self.jar is None) != (self.entry_class is None):
            raise ValueError("'entry_class' must be given for a jar, and only there")
        if self.jar is not None and (self.tables or self.keep_sinks):
            raise ValueError("'tables' and 'keep_sinks' belong to a script; a jar's sources are made with sluice.Rated")
        if self.sql is not None and self.arguments:
            raise ValueError("'arguments' belong to a jar's main method; leave them out for a script")
        return self
