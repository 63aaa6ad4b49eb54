"""The program of a job on Flink: its SQL, or the program that a file names in place of operators."""

from dataclasses import dataclass
from pathlib import Path

from models.errors import InvalidInput
from models.job import Job
from pipelines.inputs.catalogue import JAR_SUFFIX, SQL_SUFFIX, file_of_job, load_job_file, script_name
from pipelines.inputs.job_files import ProgramFile
from pipelines.inputs.parsing.files import read_text
from pipelines.store.digests import digest
from testbeds.flink.feeding.recordings import digest_of, recording
from testbeds.flink.programs.user_programs import SqlScript, UserJar, UserProgram
from testbeds.kafka.feeding.feeder import GeneratedFeed
from testbeds.kafka.feeding.replay import TopicRecording
from testbeds.kafka.supply import FedTopic, KafkaFeed


@dataclass(frozen=True)
class JobProgram:
    """A program, and what identifies it."""

    name: str
    """Name of the job."""
    program: UserProgram
    digest: str
    """Digest of the contents of all its files."""
    operators_from_flink: bool
    """Whether only Flink knows its operators."""


def job_program(job: str, reads_kafka: bool = False) -> JobProgram | None:
    """The program of a job; None for a job of operators with stated costs.

    Args:
        job: name of the catalogue, or path of a job file, a program file or a SQL file.
        reads_kafka: whether it reads topics that Sluice feeds.

    Raises:
        InvalidInput: a file cannot be read, or names no topics for a program that reads Kafka.
    """
    path = file_of_job(job)
    if reads_kafka:
        return _of_file(_with_topics(path, job), path.parent, reads_kafka)
    if path.suffix == SQL_SUFFIX:
        text = read_text(path)
        return JobProgram(script_name(path), SqlScript(text), digest(text), operators_from_flink=True)
    found = load_job_file(job)
    if isinstance(found, ProgramFile):
        return _of_file(found, path.parent, reads_kafka)
    return None if found.sql is None else _of_job(found, read_text(path.parent / found.sql))


def _of_job(job: Job, text: str) -> JobProgram:
    return JobProgram(job.name, SqlScript(text), digest(text), operators_from_flink=False)


def _with_topics(path: Path, job: str) -> ProgramFile:
    """
    Raises:
        InvalidInput: it is no program file with topics; the message shows one.
    """
    found = None if path.suffix in (SQL_SUFFIX, JAR_SUFFIX) else load_job_file(job)
    if isinstance(found, ProgramFile) and found.topics:
        return found
    what = f"jar: {path.name}, entry_class: ..., arguments: [..., '{{kafka}}', ...]"
    raise InvalidInput(
        f"'--feed kafka' needs a program file that names the topics to feed, but {path} is none; write one: "
        f"{{name: {script_name(path)}, {f'sql: {path.name}' if path.suffix == SQL_SUFFIX else what}, "
        f"topics: {{clicks: {{partitions: 8, recording: clicks.parquet}}}}}}"
    )


def _of_file(file: ProgramFile, folder: Path, reads_kafka: bool) -> JobProgram:
    kafka = _kafka(file, folder) if reads_kafka else None
    if file.jar is not None and file.entry_class is not None:
        jar = folder / file.jar
        if not jar.is_file():
            raise InvalidInput(f"the jar {jar} does not exist; check the field 'jar'")
        content = digest([file, digest_of(jar), *_recorded(kafka)])
        program = UserJar(jar, file.entry_class, file.arguments, kafka)
        return JobProgram(file.name, program, content, operators_from_flink=True)
    text = read_text(folder / (file.sql or ""))
    recordings = {
        name: recording(folder / table.file, table.time_column, table.header_lines)
        for name, table in file.tables.items()
    }
    if kafka is not None:
        content = digest([file, text, *_recorded(kafka)])
        script = SqlScript(text, keep_sinks=file.keep_sinks, kafka=kafka)
    else:
        content = digest([file, text, *(digest_of(one.path) for one in recordings.values())])
        script = SqlScript(text, recordings, keep_sinks=file.keep_sinks)
    return JobProgram(file.name, script, content, operators_from_flink=True)


def _kafka(file: ProgramFile, folder: Path) -> KafkaFeed:
    topics = (
        FedTopic(
            name,
            topic.partitions,
            GeneratedFeed(name, topic.keys, topic.exponent, topic.value_bytes)
            if topic.recording is None
            else TopicRecording(name, folder / topic.recording, topic.time, topic.key),
            topic.share,
            topic.source,
        )
        for name, topic in file.topics.items()
    )
    return KafkaFeed(tuple(topics), file.brokers)


def _recorded(kafka: KafkaFeed | None) -> list[str]:
    """What tells this feed from others: digests of the recordings."""
    if kafka is None:
        return []
    recordings = (one.content.file for one in kafka.topics if isinstance(one.content, TopicRecording))
    return ["kafka", *(digest_of(recording(file).path) for file in recordings)]
