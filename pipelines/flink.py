"""The Flink that Sluice starts on this machine, and jobs that are a SQL file and nothing else."""

import re
from pathlib import Path
from typing import Final

from models.job import Job
from pipelines.catalogue import load_cluster
from pipelines.digests import digest_bytes
from pipelines.files import read_text
from pipelines.progress import Progress
from pipelines.workspace import Workspace
from testbeds.flink.testbed import FlinkTestbed

CLUSTER: Final = "flink-local"
MEMORY_MB: Final = (1024.0,)
"""TaskManager memory on offer: one size, since with this little state more of it changes nothing."""


def open_flink(script: str | None, progress: Progress) -> FlinkTestbed:
    """A Flink of this machine, not started yet; close it.

    Args:
        script: SQL that jobs run as; None: operators that cost what the job's file states.
    """
    told: set[str] = set()

    def report(what: str, share: float) -> None:
        if what not in told:
            told.add(what)
            progress.say(f"flink: {what}")

    return FlinkTestbed(load_cluster(CLUSTER), MEMORY_MB, script=script, report=report)


def job_name(sql: Path) -> str:
    """What the job of a SQL file is called."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", sql.stem).strip("-._") or "job"


def sql_job(path: Path, workspace: Workspace, progress: Progress) -> Job:
    """The job that Flink makes of a SQL file; kept in the workspace, so that Flink is asked once for each content.

    Raises:
        InvalidInput: the file cannot be read, or Flink refuses its SQL.
    """
    script = read_text(path)
    name = job_name(path)

    def read() -> Job:
        with open_flink(script, progress) as flink:
            return flink.dataflow(name)

    content = digest_bytes(script.encode())
    return workspace.once(f"sql-jobs/{name}-{content[:12]}.json", {"sql": content, "name": name}, Job, read)
