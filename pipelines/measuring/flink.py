"""The Flink to measure on, and the jobs that Flink plans for programs."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

from flink_client.address import FlinkAddress, connection_name
from models.cluster import Cluster, WorkerOffer
from models.errors import InvalidInput
from models.job import Job
from pipelines.inputs.catalogue import load_cluster
from pipelines.inputs.job_files import ClusterFile
from pipelines.inputs.parsing.files import validate_as
from pipelines.inputs.programs import JobProgram
from pipelines.progress import Progress
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import FLINK, release_of
from testbeds.flink.local.profile import StateBackend
from testbeds.flink.named_testbed import NamedFlinkTestbed
from testbeds.flink.programs.user_programs import UserProgram, recorded_tables
from testbeds.flink.testbed import FlinkTestbed
from testbeds.local.termination import closing_on_sigterm

CLUSTER: Final = "flink-local"
MEMORY_MB: Final = (1024.0,)
"""Available TaskManager memory: one size, since with this little state more of it changes nothing."""


def flink_address(named: str | None, cluster: Cluster | WorkerOffer) -> FlinkAddress | None:
    """The cluster to measure on; None: one that Sluice starts on this machine.

    Args:
        named: URL of the REST interface, connection:NAME, or a cluster of the catalogue or a cluster file that has one.
        cluster: the cluster to plan for, which is measured on if it has an address.

    Raises:
        InvalidInput: the named cluster has no address.
    """
    if named is None:
        return cluster.flink if isinstance(cluster, ClusterFile) else None
    return named_address(named)


def named_address(named: str) -> FlinkAddress:
    """The address of a running Flink.

    Args:
        named: URL of the REST interface, connection:NAME, or a cluster of the catalogue or a cluster file that has one.

    Raises:
        InvalidInput: the named cluster has no address.
    """
    if named.startswith(("http://", "https://")) or connection_name(named) is not None:
        return validate_as({"rest_url": named}, FlinkAddress, origin="the address of Flink")
    address = load_cluster(named).flink
    if address is None:
        raise InvalidInput(
            f"a named cluster must have an address, but {named!r} has none; add 'flink: {{rest_url: "
            f'"http://host:8081"}}\' to its file'
        )
    return address


@contextmanager
def opened_flink(
    program: UserProgram | None,
    progress: Progress,
    address: FlinkAddress | None = None,
    version: str = FLINK.line,
    state_backend: StateBackend = "rocksdb",
) -> Iterator[FlinkTestbed | NamedFlinkTestbed]:
    """A Flink to measure on, closed at the end, and by SIGTERM: jobs and jars must not stay on a user's cluster.

    Raises:
        InvalidInput, SluiceError: as `open_flink`.
    """
    # A signal is handled in the main thread only, whatever thread is measuring.
    is_main = threading.current_thread() is threading.main_thread()
    closing = closing_on_sigterm() if is_main else nullcontext()
    with closing, open_flink(program, progress, address, version, state_backend) as flink:
        yield flink


def open_flink(
    program: UserProgram | None,
    progress: Progress,
    address: FlinkAddress | None = None,
    version: str = FLINK.line,
    state_backend: StateBackend = "rocksdb",
) -> FlinkTestbed | NamedFlinkTestbed:
    """A Flink to measure on, which the caller closes. A local one starts when it is first used.

    Args:
        program: the job's program; None: operators with the costs in the job's file.
        address: of a running cluster.
        version: of a local one.
        state_backend: of a local one.

    Raises:
        InvalidInput: that cluster runs another version of Flink, or its settings make measuring impossible; a local one has no
            such state backend.
        SluiceError: it does not answer.
    """
    reported: set[str] = set()

    def report(what: str, share: float) -> None:
        if what not in reported:
            reported.add(what)
            progress.say(f"flink: {what}")

    if address is not None:
        return NamedFlinkTestbed(address, program=program, report=report)
    release = release_of(version)
    cluster = load_cluster(CLUSTER)
    return FlinkTestbed(
        cluster, MEMORY_MB, program=program, release=release, state_backend=state_backend, report=report
    )


def planned_job(
    program: JobProgram,
    workspace: Workspace,
    progress: Progress,
    address: FlinkAddress | None,
    version: str = FLINK.line,
) -> Job:
    """The job that Flink plans for a program; stored in the workspace, so that Flink plans each program once.

    Args:
        address: of a running cluster; None: one that Sluice starts, of that version.

    Raises:
        InvalidInput: Flink refuses it, or the rate of a source cannot be set.
    """

    def read() -> Job:
        with opened_flink(program.program, progress, address, version) as flink:
            return flink.dataflow(program.name)

    # Another version may plan another job; the key of the default one has no version, as when there was one only.
    of_version = "" if version == FLINK.line else f"-{version}"
    key = f"flink-jobs/{program.name}-{program.digest[:12]}{of_version}.json"
    inputs = {"program": program.digest, "name": program.name}
    if len(recorded_tables(program.program)) > 1:
        inputs["shares"] = "by records"  # earlier ones had equal shares
    return workspace.once(key, inputs, Job, read)
