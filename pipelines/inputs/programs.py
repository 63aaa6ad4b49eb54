"""The program of a job on Flink: its SQL, or the program that a file names in place of operators."""

from dataclasses import dataclass
from pathlib import Path

from models.errors import InvalidInput
from models.job import Job
from pipelines.inputs.catalogue import SQL_SUFFIX, file_of_job, load_job_file, script_name
from pipelines.inputs.files import read_text
from pipelines.inputs.job_files import ProgramFile
from pipelines.store.digests import digest
from testbeds.flink.feeding.recordings import digest_of, recording
from testbeds.flink.programs.user_programs import SqlScript, UserJar, UserProgram


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


def job_program(job: str) -> JobProgram | None:
    """The program of a job; None for a job of operators with stated costs.

    Args:
        job: name of the catalogue, or path of a job file, a program file or a SQL file.

    Raises:
        InvalidInput: a file cannot be read.
    """
    path = file_of_job(job)
    if path.suffix == SQL_SUFFIX:
        text = read_text(path)
        return JobProgram(script_name(path), SqlScript(text), digest(text), operators_from_flink=True)
    found = load_job_file(job)
    if isinstance(found, ProgramFile):
        return _of_file(found, path.parent)
    return None if found.sql is None else _of_job(found, read_text(path.parent / found.sql))


def _of_job(job: Job, text: str) -> JobProgram:
    return JobProgram(job.name, SqlScript(text), digest(text), operators_from_flink=False)


def _of_file(file: ProgramFile, folder: Path) -> JobProgram:
    if file.jar is not None and file.entry_class is not None:
        jar = folder / file.jar
        if not jar.is_file():
            raise InvalidInput(f"the jar {jar} does not exist; check the field 'jar'")
        content = digest([file, digest_of(jar)])
        return JobProgram(file.name, UserJar(jar, file.entry_class, file.arguments), content, operators_from_flink=True)
    text = read_text(folder / (file.sql or ""))
    recordings = {
        name: recording(folder / table.file, table.time_column, table.header_lines)
        for name, table in file.tables.items()
    }
    content = digest([file, text, *(digest_of(one.path) for one in recordings.values())])
    script = SqlScript(text, recordings, keep_sinks=file.keep_sinks)
    return JobProgram(file.name, script, content, operators_from_flink=True)
