"""The job and the testbed of a calibration."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from pipelines.inputs.catalogue import load_cluster
from pipelines.inputs.parsing.files import validate_as
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.flink import CLUSTER, MEMORY_MB, flink_address, opened_flink
from pipelines.measuring.testbeds import TEST_CLUSTER
from pipelines.progress import Progress
from pipelines.run import PipelineRun
from pipelines.store.workspace import Workspace
from testbeds.flink.testbed import FlinkTestbed
from testbeds.protocol import Testbed
from testbeds.simulator import Simulator

Kind = Literal["flink", "simulator"]
CLUSTERS: Final[dict[Kind, str]] = {"flink": CLUSTER, "simulator": TEST_CLUSTER}
"""Default cluster."""
_ANY_RATE: Final = 1.0


def subject(
    job: str, kind: Kind, cluster: str | None, flink: str | None, workspace: Workspace, progress: Progress
) -> PipelineRun:
    """The job, its program, and the cluster, found as in `sluice plan`.

    Args:
        job: of the catalogue, or the path of a job file, a program file or a SQL file.
        cluster: of the catalogue, or a file.
        flink: URL of the REST interface of a running Flink, or a cluster that has one.
    """
    fields = {"job": job, "rate": _ANY_RATE, "testbed": kind, "cluster": cluster or CLUSTERS[kind], "flink": flink}
    request = validate_as(fields, PlanRequest, origin="the request")
    return PipelineRun(request, workspace, progress)


@contextmanager
def opened(run: PipelineRun, memory_mb: float | None) -> Iterator[Testbed]:
    """The cluster itself as a testbed, with TaskManagers of one size if Sluice starts them; they are stopped at the end.

    Args:
        memory_mb: of one TaskManager, MiB; that of the testbed if absent.
    """
    cluster = load_cluster(run.request.cluster)
    if run.request.testbed == "simulator":
        yield Simulator(cluster) if memory_mb is None else Simulator(cluster, (memory_mb,))
        return
    program = None if run.program is None else run.program.program
    address = flink_address(run.request.flink, cluster)
    if address is not None:
        with opened_flink(program, run.progress, address) as named:
            yield named
        return
    reported: set[str] = set()

    def report(what: str, share: float) -> None:
        if what not in reported:
            reported.add(what)
            run.progress.say(f"flink: {what}")

    with FlinkTestbed(cluster, (memory_mb or MEMORY_MB[-1],), program=program, report=report) as own:
        yield own
