"""The catalogue: one YAML file per job in `jobs/`, one per cluster in `clusters/`, found by name or by path."""

import difflib
import os
import re
import sysconfig
from pathlib import Path
from typing import Any, Final

from models.cluster import WorkerOffer
from models.errors import InvalidInput
from models.wording import natural_order
from pipelines.inputs.job_files import ClusterFile, JobFile, ProgramFile
from pipelines.inputs.parsing.files import read_as, read_as_one_of

CATALOGUE_VARIABLE: Final = "SLUICE_CATALOGUE"
"""Environment variable: a folder that holds `jobs/` and `clusters/`, instead of Sluice's own."""
INSTALLED: Final = Path("share", "sluice")
"""Where a wheel puts the catalogue, below the environment's folder of data."""
JOBS, CLUSTERS = "jobs", "clusters"
SUFFIXES: Final = (".yaml", ".yml", ".json")
SQL_SUFFIX: Final = ".sql"
JAR_SUFFIX: Final = ".jar"


def catalogue_folder() -> Path:
    """The folder that holds `jobs/` and `clusters/`."""
    named = os.environ.get(CATALOGUE_VARIABLE)
    if named:
        return Path(named).expanduser()
    checkout = Path(__file__).resolve().parents[2]
    return checkout if (checkout / JOBS).is_dir() else Path(sysconfig.get_path("data")) / INSTALLED


def job_names() -> list[str]:
    """Names of the jobs in the catalogue, sorted (q2 before q11)."""
    return list(_files(JOBS))


def cluster_names() -> list[str]:
    """Names of the clusters in the catalogue, sorted."""
    return list(_files(CLUSTERS))


def load_job(name_or_path: str | Path) -> JobFile:
    """A job by its name in the catalogue, or by the path of its file.

    Raises:
        InvalidInput: no such name (with the nearest ones), or the file is wrong (with field, value and rule).
    """
    job = load_job_file(name_or_path)
    if isinstance(job, ProgramFile):
        raise InvalidInput(
            f"{name_or_path} names a program, whose operators are unknown until Flink has planned it; only `sluice plan "
            f"--testbed flink` and commands that use its plans accept such a job"
        )
    return job


def load_job_file(name_or_path: str | Path) -> JobFile | ProgramFile:
    """The content of a job's file: operators, or a program for Flink; raises as `load_job`."""
    path = _find(JOBS, name_or_path)
    if path.suffix == JAR_SUFFIX:
        raise InvalidInput(
            f"{path} needs a program file that says which of its classes to run; write one: {{name: {script_name(path)}, "
            f"jar: {path.name}, entry_class: ...}}, with its topics and '--feed kafka' where it reads Kafka"
        )
    job = read_as_one_of(path, _kind_of_job)
    _check_name(path, job.name, name_or_path)
    if isinstance(job, JobFile) and job.sql is not None and not (path.parent / job.sql).is_file():
        raise InvalidInput(
            f"{path}: field 'sql' names {job.sql!r}, which is not beside it; add the file or remove 'sql'"
        )
    return job


def job_name(name_or_path: str | Path) -> str:
    """The name of a job, given by the catalogue or by a job, program or SQL file; raises as `load_job`."""
    path = file_of_job(name_or_path)
    return script_name(path) if path.suffix == SQL_SUFFIX else load_job_file(name_or_path).name


def script_name(sql: Path) -> str:
    """The name of the job of a SQL file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", sql.stem).strip("-._") or "job"


def file_of_job(name_or_path: str | Path) -> Path:
    """The file of a job of the catalogue, or the path itself; raises as `load_job`."""
    return _find(JOBS, name_or_path)


def load_cluster(name_or_path: str | Path) -> ClusterFile:
    """A cluster with given workers, by its name in the catalogue or by the path of its file.

    Raises:
        InvalidInput: no such name (with the nearest ones), or the file is wrong (with field, value and rule).
    """
    path = _find(CLUSTERS, name_or_path)
    cluster = read_as(path, ClusterFile)
    _check_name(path, cluster.name, name_or_path)
    return cluster


def load_cluster_or_offer(name_or_path: str | Path) -> ClusterFile | WorkerOffer:
    """A cluster to plan for: its workers, or the kinds that a plan picks from; raises as `load_cluster`."""
    path = _find(CLUSTERS, name_or_path)
    cluster = read_as_one_of(path, _kind_of_cluster)
    _check_name(path, cluster.name, name_or_path)
    return cluster


def _kind_of_job(data: Any) -> type[JobFile] | type[ProgramFile]:
    is_program = isinstance(data, dict) and "operators" not in data and ("sql" in data or "jar" in data)
    return ProgramFile if is_program else JobFile


def _kind_of_cluster(data: Any) -> type[ClusterFile] | type[WorkerOffer]:
    return WorkerOffer if isinstance(data, dict) and "kinds" in data else ClusterFile


def _files(kind: str) -> dict[str, Path]:
    folder = catalogue_folder() / kind
    if not folder.is_dir():
        raise InvalidInput(
            f"the catalogue folder {folder} does not exist; set {CATALOGUE_VARIABLE} to a folder that holds "
            f"'{JOBS}/' and '{CLUSTERS}/', or unset it to use Sluice's own"
        )
    paths = [path for path in folder.iterdir() if path.suffix in SUFFIXES]
    return {path.stem: path for path in sorted(paths, key=lambda path: natural_order(path.stem))}


def is_path(name_or_path: str | Path) -> bool:
    """Anything with a path separator or one of the suffixes is a path; the rest are names."""
    text = str(name_or_path)
    return (
        isinstance(name_or_path, Path)
        or os.sep in text
        or "/" in text
        or text.endswith((*SUFFIXES, SQL_SUFFIX, JAR_SUFFIX))
    )


def _find(kind: str, name_or_path: str | Path) -> Path:
    if is_path(name_or_path):
        return Path(name_or_path)
    files = _files(kind)
    name = str(name_or_path)
    if name in files:
        return files[name]
    near = [known for known in files if name in known] or difflib.get_close_matches(name, files, n=3, cutoff=0.6)
    singular = kind.removesuffix("s")
    known = f"known {kind}: {', '.join(files)}" if files else f"{catalogue_folder() / kind} is empty"
    hint = f"did you mean {' or '.join(repr(n) for n in near[:3])}? " if near else ""
    raise InvalidInput(f"no {singular} {name!r} in the catalogue; {hint}{known}; a path to a file works too")


def _check_name(path: Path, name: str, asked: str | Path) -> None:
    if not is_path(asked) and name != path.stem:
        raise InvalidInput(f"{path}: field 'name' must be the file's own name {path.stem!r}, but got {name!r}")
