"""A Flink cluster on this machine as a testbed: jobs run as SQL, or as operators with stated costs."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput
from models.job import Job
from testbeds.flink.control import SourceControl
from testbeds.flink.distribution import Report
from testbeds.flink.graph import read_job
from testbeds.flink.processes import LocalCluster
from testbeds.flink.profile import Profile, TaskManager
from testbeds.flink.programs import UNCHAINED, Payment, sql_program, whole_script
from testbeds.flink.run import FlinkRun
from testbeds.flink.submission import Deployed, Submission
from testbeds.placing import Placed, check_parallelism, place
from testbeds.protocol import Configuration, Limits

INJECTOR_MB: Final = 960.0
SLOT_STEP: Final = 4
"""Slots of an injector come in steps, since another number of them means to start the cluster anew."""
READER_MB: Final = 900.0
WARM_UP_S: Final = 12.0
WARM_UP_RATE: Final = 40_000.0
"""Records/s: enough for the JVMs to compile what runs, too few to fill the state."""


class FlinkTestbed:
    """Implements `testbeds.protocol.Testbed`. Processes are started at the first `deploy`, and stopped by `close`.

    With a script, jobs run as that SQL, and each TaskManager is held to its cores by a quota. Without one, operators pay
    what a record costs as `payment` says; with SHARED, the tasks of a worker contend for its cores also where this
    machine has fewer. One job runs at a time.
    """

    def __init__(
        self,
        cluster: Cluster,
        memory_levels_mb: Sequence[float],
        *,
        script: str | None = None,
        payment: Payment = Payment.SHARED,
        report: Report = lambda what, share: None,
    ) -> None:
        """
        Args:
            cluster: the TaskManagers to start; sources get others beside them.
            memory_levels_mb: memory of a TaskManager's process on offer, MiB.
            script: SQL that jobs run as, see `programs.whole_script`.
        """
        self._cluster, self._levels, self._payment = cluster, tuple(sorted(memory_levels_mb)), payment
        self._script, self._report = script, report
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

    def dataflow(self, name: str) -> Job:
        """The job that Flink makes of the script; see `graph.read_job`.

        Raises:
            InvalidInput: there is no script, or Flink refuses it.
        """
        if self._script is None:
            raise InvalidInput("the dataflow of a SQL script can only be read by a testbed that was given one")
        self.local.ensure(Profile((TaskManager("reader", 1, READER_MB),)))
        program = sql_program(name, whole_script(self._script, "127.0.0.1:1", seed=0), UNCHAINED, slot_per_task=True)
        return read_job(name, *self.local.rest.plan(self.local.jar_id, program))

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> FlinkRun:
        """Start the job; see `testbeds.protocol.Testbed.deploy`.

        Raises:
            InvalidInput: also if tasks are given managed memory of their own, which slots of one size cannot do, or the
                SQL is not the job's dataflow.
            Infeasible: also if another run is open.
            SluiceError: Flink could not be fetched or started, or the job failed at its start.
        """
        profile, placed = self._planned(job, configuration)
        if self._open is not None:
            raise Infeasible("the Flink testbed runs one job at a time; close the run that is open")
        self._report(f"running {len(profile.task_managers)} TaskManagers, {profile.memory_mb:,.0f} MiB in all", 0.0)
        self.local.ensure(profile)
        control = SourceControl()
        try:
            submission = Submission(self.local, job, control, seed, self._script, self._payment)
            self.local.limit_cpu(False)
            deployed = submission.start(configuration.parallelism, placed)
            if self._script is not None:
                self._hold_to_cores(job, deployed, control)
        except BaseException:
            control.close()
            raise
        self._open = FlinkRun(submission, deployed, run, self._closed)
        return self._open

    def close(self) -> None:
        """Stop the cluster; may be called twice."""
        try:
            if self._open is not None:
                self._open.close()
        finally:
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

    def _hold_to_cores(self, job: Job, deployed: Deployed, control: SourceControl) -> None:
        """Let the JVMs compile what runs while they have the whole machine, then set the quotas."""
        if not self.local.has_cpu_quotas:
            self._report("TaskManagers share the processors: control groups cannot be written here", 1.0)
        control.offer({deployed.sources[o.name]: o.rate_share * WARM_UP_RATE for o in job.sources})
        time.sleep(WARM_UP_S)
        self.local.check()
        self.local.limit_cpu(True)

    def _planned(self, job: Job, configuration: Configuration) -> tuple[Profile, Placed]:
        """The cluster that a configuration needs, and where its tasks go."""
        check_parallelism(job, configuration)
        if configuration.managed_memory_mb:
            raise InvalidInput(
                "slots of one TaskManager share its managed memory evenly on Flink; leave 'managed_memory_mb' out"
            )
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
            TaskManager(w.name, (slots := -(-counts[i] // SLOT_STEP) * SLOT_STEP), INJECTOR_MB, cores=slots)
            for i, w in enumerate(placed.workers)
            if i >= len(workers)
        ]
        for one in (*workers, *injectors):
            one.options()
        return Profile((*workers, *injectors)), placed
