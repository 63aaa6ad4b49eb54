"""The Flink that is measured on, and the jobs that Flink makes of programs."""

from typing import Final

from models.cluster import Cluster, FlinkAddress
from models.errors import InvalidInput
from models.job import Job
from pipelines.catalogue import load_cluster
from pipelines.files import validate_as
from pipelines.programs import JobProgram
from pipelines.progress import Progress
from pipelines.workspace import Workspace
from testbeds.flink.named_testbed import NamedFlinkTestbed
from testbeds.flink.testbed import FlinkTestbed
from testbeds.flink.user_programs import UserProgram

CLUSTER: Final = "flink-local"
MEMORY_MB: Final = (1024.0,)
"""TaskManager memory on offer: one size, since with this little state more of it changes nothing."""


def flink_address(named: str | None, cluster: Cluster) -> FlinkAddress | None:
    """The cluster that is measured on; None: one that Sluice starts on this machine.

    Args:
        named: URL of the REST interface, or a cluster of the catalogue or a cluster file that has one.
        cluster: the one planned for, which is measured on if it has an address.

    Raises:
        InvalidInput: the named cluster has no address.
    """
    if named is None:
        return cluster.flink
    if named.startswith(("http://", "https://")):
        return validate_as({"rest_url": named}, FlinkAddress, origin="the address of Flink")
    address = load_cluster(named).flink
    if address is None:
        raise InvalidInput(
            f"a cluster that is measured on must say where it runs, but {named!r} does not; add 'flink: {{rest_url: "
            f'"http://host:8081"}}\' to its file'
        )
    return address


def open_flink(
    program: UserProgram | None, progress: Progress, address: FlinkAddress | None = None
) -> FlinkTestbed | NamedFlinkTestbed:
    """A Flink to measure on; close it. One of this machine is not started yet.

    Args:
        program: what jobs run as; None: operators that cost what the job's file states.
        address: of a cluster that runs already.

    Raises:
        InvalidInput: that cluster runs another version of Flink, or is set up so that it cannot be measured on.
        SluiceError: it does not answer.
    """
    told: set[str] = set()

    def report(what: str, share: float) -> None:
        if what not in told:
            told.add(what)
            progress.say(f"flink: {what}")

    if address is not None:
        return NamedFlinkTestbed(address, program=program, report=report)
    return FlinkTestbed(load_cluster(CLUSTER), MEMORY_MB, program=program, report=report)


def planned_job(program: JobProgram, workspace: Workspace, progress: Progress, address: FlinkAddress | None) -> Job:
    """The job that Flink makes of a program; kept in the workspace, so that Flink is asked once for each content.

    Raises:
        InvalidInput: Flink refuses it, or the rate of a source cannot be set.
    """

    def read() -> Job:
        with open_flink(program.program, progress, address) as flink:
            return flink.dataflow(program.name)

    key = f"flink-jobs/{program.name}-{program.digest[:12]}.json"
    return workspace.once(key, {"program": program.digest, "name": program.name}, Job, read)
