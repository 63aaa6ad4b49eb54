"""Partitions of the topics that a job's sources read, asked of a Kafka broker once, when a run is started."""

from typing import Final, Literal

from pydantic import Field

from models.errors import InvalidInput
from models.job import Job, Operator
from models.schema import SCHEMA_VERSION, Format, Name, PositiveInt
from pipelines.inputs.job_files import JobFile

PARTITIONS_FILE: Final = "partitions.json"


class SourcePartitions(Format):
    """What a broker said of the topics of a job's sources."""

    schema_version: Literal[1] = SCHEMA_VERSION
    brokers: str = Field(min_length=1, description="Their address, or connection:NAME.")
    topics: dict[Name, dict[str, PositiveInt]] = Field(description="Partitions of each topic, by source.")

    def of(self, source: str) -> int | None:
        """Partitions of all topics of a source; None where it names none."""
        return sum(self.topics.get(source, {}).values()) or None


def read_partitions(job: JobFile, brokers: str | None) -> SourcePartitions | None:
    """Ask the broker of a job's file for the partitions of its topics; None where the file names none, or states how many.

    Args:
        brokers: in place of those of the file.

    Raises:
        InvalidInput: a topic does not exist, its partitions are not those that the file states, or no broker is named.
        SluiceError: no broker answers.
    """
    reading = [source for source in job.sources if source.topics]
    asked = brokers or job.brokers
    if brokers is not None and not reading:
        raise InvalidInput(
            f"--kafka has the partitions of a source's topics read, but no source of job {job.name!r} names any; add "
            "'topics: [NAME]' to the source in the job's file, or leave --kafka out"
        )
    if asked is None:
        _check_stated(job, reading)
        return None
    if not reading:
        return None
    found = SourcePartitions(brokers=asked, topics={source.name: _counted(asked, source.topics) for source in reading})
    for source in reading:
        _check_agrees(job, source, found)
    return found


def with_partitions(job: JobFile, found: SourcePartitions | None) -> JobFile:
    """The job with no more tasks of a source than its topics have partitions."""
    if found is None:
        return job
    operators = tuple(
        o if (read := found.of(o.name)) is None else o.model_copy(update={"max_parallelism": read})
        for o in job.operators
    )
    return job.model_copy(update={"operators": operators})


def _counted(brokers: str, topics: tuple[str, ...]) -> dict[str, int]:
    from testbeds.kafka.named import kafka_connection  # Most jobs are planned without a broker.

    connection = kafka_connection(brokers)
    admin = connection.admin()
    return {topic: len(connection.partitions(admin.list_topics, topic)) for topic in topics}


def _check_stated(job: Job, reading: list[Operator]) -> None:
    for source in reading:
        if source.max_parallelism is None:
            raise InvalidInput(
                f"source {source.name!r} of job {job.name!r} reads the topics {', '.join(source.topics)}, so its partitions "
                "must be known: name 'brokers' in the job's file (HOST:PORT or connection:NAME), give --kafka, or state them "
                "as 'max_parallelism' of the source"
            )


def _check_agrees(job: Job, source: Operator, found: SourcePartitions) -> None:
    read = found.of(source.name)
    if source.max_parallelism is not None and source.max_parallelism != read:
        raise InvalidInput(
            f"'max_parallelism' of source {source.name!r} of job {job.name!r} must be the partitions of its topics "
            f"({', '.join(source.topics)}), which are {read} at {found.brokers}, but is {source.max_parallelism}; remove or "
            "correct it"
        )
