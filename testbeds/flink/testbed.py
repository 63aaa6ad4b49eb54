"""A Flink cluster on this machine as a testbed: jobs run as SQL, or as operators with stated costs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from models.closing import Closing
from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput
from models.job import Job
from models.wording import amount
from testbeds.feeding.control import SourceControl
from testbeds.flink.fed_run import FedRun
from testbeds.flink.feeding.warming import WARM_AGAIN_S, WARM_UP_S, run_until_steady, warm_up
from testbeds.flink.lab.stolen import Patience, least_stolen
from testbeds.flink.local.distribution import FLINK, Release, Report
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, StateBackend, TaskManager, check_backend
from testbeds.flink.measuring.samples import TaskIntervals
from testbeds.flink.programs.stated_costs import Payment
from testbeds.flink.programs.user_programs import UserProgram, planned_job
from testbeds.flink.rescaling import Arrangement
from testbeds.flink.run import FlinkRun
from testbeds.flink.submission import Deployed, Submission
from testbeds.kafka.supply import KafkaSupply
from testbeds.placing import Placed, check_parallelism, check_worker_memory, place
from testbeds.protocol import Configuration, Limits

INJECTOR_MB: Final = 960.0
SLOT_STEP: Final = 8
"""Slots of an injector are rounded up to steps, since another number of them restarts the cluster."""
READER_MB: Final = 900.0
PATIENCE_S: Final = 300.0
"""Total time to wait in all measurements. Operators with stated costs never wait, since their time is stated."""


class FlinkTestbed(Closing):
    """Implements `testbeds.protocol.Testbed`. Processes are started at the first `deploy`, and stopped by `close`.

    With a program, jobs run as that SQL or jar, and a quota limits each TaskManager to its cores. Without one, operators
    pay stated costs as `payment` says; with SHARED, the tasks of a worker contend for its cores even if this machine has
    fewer. One job runs at a time.
    """

    def __init__(
        self,
        cluster: Cluster,
        memory_levels_mb: Sequence[float],
        *,
        program: UserProgram | None = None,
        payment: Payment = Payment.SHARED,
        release: Release = FLINK,
        state_backend: StateBackend = "rocksdb",
        settings: Mapping[str, str] | None = None,
        report: Report = lambda what, share: None,
    ) -> None:
        """
        Args:
            cluster: the TaskManagers to start; sources get additional ones.
            memory_levels_mb: available memory sizes of a TaskManager's process, MiB.
            program: SQL or a jar that jobs run as.
            release: the Flink to start.
            state_backend: where its jobs keep their state.
            settings: of Flink, besides.

        Raises:
            InvalidInput: the release has no such state backend.
        """
        check_backend(state_backend, release)
        self._settings = {"state.backend.type": state_backend, **(settings or {})}
        self._cluster, self._levels, self._payment = cluster, tuple(sorted(memory_levels_mb)), payment
        self._program, self._report = program, report
        self.release = release
        self._local: LocalCluster | None = None
        self._supply = None if program is None or program.kafka is None else KafkaSupply(program.kafka, self._say)
        self._open: FlinkRun | FedRun | None = None
        self._patience = Patience(PATIENCE_S if program is not None else 0.0)
        self._is_warm = False
        """Whether the running JVMs have warmed up with the program."""

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
        """The processes; Flink is fetched at the first access."""
        if self._local is None:
            self._local = LocalCluster(self._report, self.release)
        return self._local

    def dataflow(self, name: str) -> Job:
        """The job that Flink makes of the program; see `graph.read_job`.

        Raises:
            InvalidInput: there is no program, or Flink refuses it.
        """
        if self._program is None:
            raise InvalidInput("the dataflow of a program can only be read by a testbed that was given one")
        self.local.ensure(Profile((TaskManager("reader", 1, READER_MB),), self._settings))
        return planned_job(self._program, name, self.local)

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> FlinkRun | FedRun:
        """Start the job; see `testbeds.protocol.Testbed.deploy`. One that reads Kafka cannot be rescaled.

        Raises:
            InvalidInput: also if tasks have managed memory of their own, which slots of equal size cannot provide, or the
                program is not the job's dataflow.
            Infeasible: also if another run is open.
            SluiceError: Flink could not be fetched or started, or the job failed at its start.
        """
        profile, placed = self._planned(job, configuration)
        if self._open is not None:
            raise Infeasible("the Flink testbed runs one job at a time; close the run that is open")
        self._report(f"running {len(profile.task_managers)} TaskManagers, {profile.memory_mb:,.0f} MiB in all", 0.0)
        self._ensure(profile)
        if self._supply is not None:
            self._open = self._deploy_fed(self._supply, job, configuration, placed, run, seed)
            return self._open
        if self._program is not None and not self._is_warm:
            self._warm_up_jvms(job, configuration, seed)
        control = SourceControl()
        try:
            submission = Submission(self.local, job, control.address, seed, self._program, self._payment)
            self.local.limit_cpu(False)
            deployed = submission.start(configuration.parallelism, placed)
            if self._program is not None:
                self._hold_to_cores(job, deployed, control)
        except BaseException:
            control.close()
            raise
        self._open = FlinkRun(
            submission,
            deployed,
            run,
            self._closed,
            control,
            configuration=configuration,
            arrange=partial(self._arranged, submission, control),
            undisturbed=self._least_stolen,
        )
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
            if self._supply is not None:
                self._supply.close()

    def _deploy_fed(
        self, supply: KafkaSupply, job: Job, configuration: Configuration, placed: Placed, run: str, seed: int
    ) -> FedRun:
        """Start a job that reads Kafka, compile it with the whole machine, and then hold it to its cores."""
        fed = supply.feed()
        try:
            brokers = supply.connection.bootstrap
            submission = Submission(self.local, job, brokers, seed, self._program, self._payment)
            self.local.limit_cpu(False)
            deployed = submission.start(configuration.parallelism, placed)
        except BaseException:
            fed.close()
            raise
        opened = FedRun(submission, deployed, run, self._closed, fed, say=self._say, undisturbed=self._least_stolen)
        try:
            self._report("warming up until the program is compiled", 0.0)
            self._report(f"warmed up: the whole machine takes {amount(opened.warm_up())} records/s", 1.0)
            if self._has_quotas():
                self.local.limit_cpu(True)
                opened.find_pace()
        except BaseException:
            opened.close()
            raise
        return opened

    def _ensure(self, profile: Profile) -> None:
        self._is_warm = self._is_warm and self.local.runs(profile)
        self.local.ensure(profile)

    def _arranged(self, submission: Submission, control: SourceControl, configuration: Configuration) -> Arrangement:
        """How a running job would change to another configuration."""
        profile, placed = self._planned(submission.job, configuration)
        live = self.local.runs(profile)

        def prepare() -> None:
            if not live:
                self._ensure(profile)

        def settle(deployed: Deployed) -> None:
            if not live and self._program is not None:
                self._hold_to_cores(submission.job, deployed, control)

        return Arrangement(placed, live, prepare, settle)

    def _least_stolen(self, measure: Callable[[], TaskIntervals]) -> TaskIntervals:
        return least_stolen(measure, self._patience, self._say)

    def _say(self, what: str) -> None:
        self._report(what, 0.0)

    def _closed(self) -> None:
        self._open = None

    def _warm_up_jvms(self, job: Job, configuration: Configuration, seed: int) -> None:
        """Let new JVMs compile the program while they have the whole machine: it runs at full rate, with a task of each
        operator on every TaskManager, and then ends, so that none of its state is left.
        """
        room = sum(w.slots for w in self._cluster.workers) // len(job.scaled_operators)
        most = max(1, min(len(self._cluster.workers), room))
        spread = {o.name: min(most, o.max_parallelism or most) for o in job.scaled_operators}
        tasks = {**configuration.parallelism, **spread}
        _, placed = self._planned(job, Configuration(tasks, configuration.memory_mb))
        self._report("warming up until the program is compiled", 0.0)
        with SourceControl() as control:
            self.local.limit_cpu(False)
            submission = Submission(self.local, job, control.address, seed, self._program, self._payment)
            deployed = submission.start(tasks, placed)
            try:
                taken = run_until_steady(control, job, deployed, self.local.check)
            finally:
                self.local.rest.cancel(deployed.id)
        self._report(f"warmed up: the whole machine takes {amount(taken)} records/s", 1.0)
        self._is_warm = True

    def _hold_to_cores(self, job: Job, deployed: Deployed, control: SourceControl) -> None:
        """Let the JVMs compile the program while they have the whole machine, then set the quotas."""
        self._has_quotas()
        warm_up(control, job, deployed, WARM_AGAIN_S if self._is_warm else WARM_UP_S)
        self._is_warm = True
        self.local.check()
        self.local.limit_cpu(True)

    def _has_quotas(self) -> bool:
        if not self.local.has_cpu_quotas:
            self._report("TaskManagers share all processors, since control groups cannot be written here", 1.0)
        return self.local.has_cpu_quotas

    def _planned(self, job: Job, configuration: Configuration) -> tuple[Profile, Placed]:
        """The cluster that a configuration needs, and where its tasks go."""
        check_parallelism(job, configuration)
        if configuration.managed_memory_mb:
            raise InvalidInput(
                "slots of one TaskManager share its managed memory evenly on Flink; leave 'managed_memory_mb' out"
            )
        check_worker_memory(self._cluster, configuration.memory_mb)
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
        return Profile((*workers, *injectors), self._settings), placed
