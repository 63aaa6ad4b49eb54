"""A Flink cluster on this machine as a testbed for jobs of the catalogue, run as operators with stated costs."""

from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job
from testbeds.flink.answers import Vertex
from testbeds.flink.control import SourceControl
from testbeds.flink.distribution import Report
from testbeds.flink.processes import LocalCluster
from testbeds.flink.profile import Profile, TaskManager
from testbeds.flink.programs import Payment, dataflow_program
from testbeds.flink.run import Deployed, FlinkRun
from testbeds.placing import Placed, check_parallelism, place
from testbeds.protocol import Configuration, Limits

INJECTOR_MB: Final = 960.0
_START_S: Final = 120.0
_SOURCE_PREFIX: Final = "Source: "


class FlinkTestbed:
    """Implements `testbeds.protocol.Testbed`. Processes are started at the first `deploy`, and stopped by `close`.

    Operators pay what a record costs as `payment` says; with SHARED, the tasks of a worker contend for its cores also
    where this machine has fewer. One job runs at a time.
    """

    def __init__(
        self,
        cluster: Cluster,
        memory_levels_mb: Sequence[float],
        *,
        payment: Payment = Payment.SHARED,
        report: Report = lambda what, share: None,
    ) -> None:
        """
        Args:
            cluster: the TaskManagers to start; sources get others beside them.
            memory_levels_mb: memory of a TaskManager's process on offer, MiB.
        """
        self._cluster, self._levels, self._payment = cluster, tuple(sorted(memory_levels_mb)), payment
        self._report = report
        self._local: LocalCluster | None = None
        self._open: FlinkRun | None = None

    @property
    def name(self) -> str:
        return "flink"

    @property
    def limits(self) -> Limits:
        return Limits(
            max_task_slots=self._cluster.slots,
            memory_levels_mb=self._levels,
            slots_per_worker=max(w.slots for w in self._cluster.workers),
        )

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    @property
    def local(self) -> LocalCluster:
        """The processes; Flink is fetched when they are first asked for."""
        if self._local is None:
            self._local = LocalCluster(self._report)
        return self._local

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> FlinkRun:
        """Start the job; see `testbeds.protocol.Testbed.deploy`.

        Raises:
            InvalidInput: also if tasks are given managed memory of their own, which slots of one size cannot do.
            Infeasible: also if another run is open.
            SluiceError: Flink could not be fetched or started, or the job failed at its start.
        """
        check_parallelism(job, configuration)
        if configuration.managed_memory_mb:
            raise InvalidInput(
                "slots of one TaskManager share its managed memory evenly on Flink; leave 'managed_memory_mb' out"
            )
        profile, placed = self._planned(job, configuration)
        if self._open is not None:
            raise Infeasible("the Flink testbed runs one job at a time; close the run that is open")
        local = self.local
        local.ensure(profile)
        control = SourceControl()
        try:
            deployed = self._submitted(local, job, placed, configuration, control, run, seed)
        except BaseException:
            control.close()
            raise
        self._open = FlinkRun(deployed, local.rest, control, local.check, self._closed)
        return self._open

    def close(self) -> None:
        """Stop the cluster; may be called twice."""
        if self._open is not None:
            self._open.close()
        if self._local is not None:
            self._local.close()
            self._local = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _closed(self) -> None:
        self._open = None

    def _planned(self, job: Job, configuration: Configuration) -> tuple[Profile, Placed]:
        """The cluster that a configuration needs, and where its tasks go."""
        small = [w for w in self._cluster.workers if w.memory_mb is not None and w.memory_mb < configuration.memory_mb]
        if small:
            raise Infeasible(
                f"worker {small[0].name!r} has {small[0].memory_mb:g} MiB, too few for a TaskManager of "
                f"{configuration.memory_mb:g} MiB; ask for less memory"
            )
        workers = [
            TaskManager(w.name, w.slots, configuration.memory_mb, cores=w.cores or w.slots)
            for w in self._cluster.workers
        ]
        room = [one.managed_memory_mb for one in workers]
        placed = place(job, configuration, self._cluster, room)
        counts = [sum(at == i for ws in placed.task_workers.values() for at in ws) for i in range(len(placed.workers))]
        injectors = [
            TaskManager(w.name, counts[i], INJECTOR_MB, cores=counts[i])
            for i, w in enumerate(placed.workers)
            if i >= len(workers)
        ]
        for one in (*workers, *injectors):
            one.options()
        return Profile((*workers, *injectors)), placed

    def _submitted(
        self,
        local: LocalCluster,
        job: Job,
        placed: Placed,
        configuration: Configuration,
        control: SourceControl,
        run: str,
        seed: int,
    ) -> Deployed:
        program = dataflow_program(
            job, configuration.parallelism, control.address, {}, payment=self._payment, seed=seed, slot_per_task=True
        )
        jar = local.jar_id
        vertices = {_operator(v): v for v in local.rest.plan(jar, program)[0]}
        workers = {
            (name, task): placed.workers[at].name
            for name, of_operator in placed.task_workers.items()
            for task, at in enumerate(of_operator)
        }
        local.place({(vertices[name].id, task): worker for (name, task), worker in workers.items()})
        id_ = local.rest.run(jar, program)
        try:
            local.rest.wait_until_running(id_, _START_S)
            _check_placed(local, id_, vertices, workers)
        except BaseException:
            local.rest.cancel(id_)
            raise
        return Deployed(run, job, id_, vertices, workers)


def _check_placed(
    local: LocalCluster, job: str, vertices: dict[str, Vertex], workers: dict[tuple[str, int], str]
) -> None:
    """What runs is what was asked for."""
    for name, vertex in vertices.items():
        for one in local.rest.subtasks(job, vertex.id):
            if one.task_manager != workers[name, one.index]:
                raise SluiceError(
                    f"task {one.index} of {name!r} was to run on {workers[name, one.index]!r}, but Flink put it on "
                    f"{one.task_manager!r}; check that the kit's jar comes first on the class path of the JobManager"
                )


def _operator(vertex: Vertex) -> str:
    return vertex.name.removeprefix(_SOURCE_PREFIX)
