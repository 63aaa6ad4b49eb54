"""A user's own Flink cluster as a testbed."""

from contextlib import suppress
from functools import partial
from typing import Final

from flink_client.address import FlinkAddress
from flink_client.jobs.running import Scheduler
from flink_client.metrics.readings import REST_REFRESH_S
from flink_client.rest.answers import ENDED
from flink_client.rest.waiting import wait_for
from models.closing import Closing
from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job
from testbeds.feeding.control import SourceControl
from testbeds.flink.fed_run import FedRun
from testbeds.flink.feeding.warming import WARM_UP_S, warm_up
from testbeds.flink.local.distribution import Report
from testbeds.flink.local.profile import STATE_METRICS
from testbeds.flink.named import NamedCluster
from testbeds.flink.programs.stated_costs import Payment
from testbeds.flink.programs.user_programs import UserProgram, planned_job
from testbeds.flink.rescaling import Arrangement
from testbeds.flink.run import FlinkRun
from testbeds.flink.submission import Deployed, Submission
from testbeds.kafka.supply import KafkaSupply
from testbeds.placing import check_parallelism
from testbeds.protocol import Configuration, Limits

CANCEL_S: Final = 30.0
LEASE_S: Final = 60.0
"""Time after which a job left by a killed process ends by itself, seconds."""
SOURCES_OF: Final = 3
"""One slot in this many is reserved for sources."""
JOB_SETTINGS: Final = {**STATE_METRICS, "restart-strategy.type": "none"}
"""Settings that can be changed per job, whatever those of the cluster."""


class NamedFlinkTestbed(Closing):
    """Implements `testbeds.protocol.Testbed` on a running cluster, with its slots and memory.

    Sources take slots of the cluster, too, a third of them at most; if that is too few, the rate of the sources is measured,
    and the job takes at least as much. Flink places tasks; without quotas the operators of one TaskManager share all its
    processors.
    """

    def __init__(
        self,
        address: FlinkAddress,
        *,
        program: UserProgram | None = None,
        warm_up_s: float = WARM_UP_S,
        report: Report = lambda what, share: None,
    ) -> None:
        """
        Args:
            program: SQL or a jar that jobs run as; None: operators with stated costs, each paying its own.
            warm_up_s: how long JVMs may compile a program before it is measured.

        Raises:
            InvalidInput: it runs another version of Flink, or its settings make measuring impossible.
            SluiceError: it does not answer.
        """
        self._supply = None if program is None or program.kafka is None else KafkaSupply(program.kafka, self._say)
        if self._supply is not None:  # what sources read is only read by REST
            address = address.model_copy(update={"prometheus_url": None})
        self._named, self._prometheus = NamedCluster(address, report), address.prometheus_url
        self._program, self._warm_up_s, self._report = program, warm_up_s, report
        self._open: FlinkRun | FedRun | None = None
        try:
            self._tell()
        except BaseException:
            self._named.close()
            raise

    @property
    def name(self) -> str:
        return "flink"

    @property
    def limits(self) -> Limits:
        slots = self.cluster.slots
        for_sources = max(1, slots // SOURCES_OF)
        return Limits(
            max_task_slots=max(1, slots - for_sources),
            max_source_tasks=for_sources,
            memory_levels_mb=(self._named.found.memory_mb,),
            slots_per_worker=max(w.slots for w in self.cluster.workers),
        )

    @property
    def cluster(self) -> Cluster:
        return self._named.found.cluster

    def dataflow(self, name: str) -> Job:
        """The job that Flink makes of the program; see `graph.read_job`.

        Raises:
            InvalidInput: there is no program, or Flink refuses it.
        """
        if self._program is None:
            raise InvalidInput("the dataflow of a program can only be read by a testbed that was given one")
        return planned_job(self._program, name, self._named)

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> FlinkRun | FedRun:
        """Start the job; see `testbeds.protocol.Testbed.deploy`. One that reads Kafka cannot be rescaled.

        Raises:
            InvalidInput: also if a placement or another memory is asked for, or the program is not the job's dataflow.
            Infeasible: also if too few slots are free, or another run is open.
            SluiceError: the cluster does not answer, or the job failed at its start.
        """
        check_parallelism(job, configuration)
        self._check(configuration)
        if self._open is not None:
            raise Infeasible("the Flink testbed runs one job at a time; close the run that is open")
        sources = sum(configuration.parallelism[o.name] for o in job.sources)
        self._named.require_slots(sum(configuration.parallelism.values()), sources)
        if self._supply is not None:
            self._open = self._deploy_fed(self._supply, job, configuration, run, seed)
            return self._open
        control = SourceControl(self._named.host, LEASE_S)
        try:
            submission = Submission(self._named, job, control.address, seed, self._program, Payment.PACED, JOB_SETTINGS)
            deployed = submission.start(configuration.parallelism, None)
            try:
                self._warm_up(job, deployed, control)
            except BaseException:
                self._named.rest.cancel(deployed.id)
                raise
        except BaseException:
            control.close()
            raise
        self._open = FlinkRun(
            submission,
            deployed,
            run,
            partial(self._closed, deployed.id),
            control,
            configuration=configuration,
            arrange=partial(self._arranged, submission),
        )
        return self._open

    def _deploy_fed(self, supply: KafkaSupply, job: Job, configuration: Configuration, run: str, seed: int) -> FedRun:
        """Start a job that reads Kafka, and let the JVMs compile it."""
        fed = supply.feed()
        try:
            brokers = supply.connection.bootstrap
            submission = Submission(self._named, job, brokers, seed, self._program, Payment.PACED, JOB_SETTINGS)
            deployed = submission.start(configuration.parallelism, None)
        except BaseException:
            fed.close()
            raise
        opened = FedRun(submission, deployed, run, partial(self._closed, deployed.id), fed, say=self._say)
        try:
            opened.warm_up()
        except BaseException:
            opened.close()
            raise
        return opened

    def _say(self, what: str) -> None:
        self._report(what, 0.0)

    def _arranged(self, submission: Submission, configuration: Configuration) -> Arrangement:
        """How the running job would change to another configuration."""
        check_parallelism(submission.job, configuration)
        self._check(configuration)
        found = self._named.found
        held = sum(self._open.configuration.parallelism.values()) if isinstance(self._open, FlinkRun) else 0
        sources = sum(configuration.parallelism[o.name] for o in submission.job.sources)
        self._named.require_slots(sum(configuration.parallelism.values()) - held, sources)
        live = found.scheduler is Scheduler.ADAPTIVE
        if not live and not found.takes_savepoints:
            raise Infeasible(
                f"the scheduler of the cluster at {self._named.rest.url} cannot change a running job, and it has no folder "
                f"for savepoints to restart it from; set jobmanager.scheduler to adaptive, or state.savepoints.dir"
            )
        return Arrangement(None, live, lambda: None, lambda deployed: None)

    def close(self) -> None:
        """Cancel the running job and remove uploaded jars; may be called twice."""
        try:
            if self._open is not None:
                self._open.close()
        finally:
            self._named.close()
            if self._supply is not None:
                self._supply.close()

    def _closed(self, id_: str) -> None:
        """Wait for the end of a job, which frees its slots."""
        self._open = None
        rest = self._named.rest
        with suppress(SluiceError):
            wait_for(lambda: rest.job(id_).state in ENDED or None, CANCEL_S, f"the end of job {id_}")

    def _warm_up(self, job: Job, deployed: Deployed, control: SourceControl) -> None:
        """Let the JVMs compile the program; operators with stated costs need no warm-up."""
        if self._program is not None and self._warm_up_s > 0:
            warm_up(control, job, deployed, self._warm_up_s)

    def _check(self, configuration: Configuration) -> None:
        found = self._named.found
        if configuration.placement is not None or configuration.managed_memory_mb:
            raise InvalidInput(
                "on a cluster that is not Sluice's own, Flink places the tasks, and memory stays as it is; leave "
                "'placement' and 'managed_memory_mb' out"
            )
        if configuration.memory_mb != found.memory_mb:
            raise Infeasible(
                f"TaskManagers of the cluster have {found.memory_mb:g} MiB, which cannot be changed from here, but "
                f"{configuration.memory_mb:g} were requested; request what they have, or restart them with other memory"
            )

    def _tell(self) -> None:
        """Notes on the properties of the cluster that affect measurements."""
        found, url = self._named.found, self._named.rest.url
        self._report(
            f"{url} has {len(found.rooms)} TaskManagers with {self.cluster.slots} free slots and {found.memory_mb:,.0f} MiB; "
            f"Sluice does not set their memory and processors, and Flink places the tasks",
            1.0,
        )
        if found.others:
            self._report(f"{len(found.others)} other jobs run there, and affect the figures", 1.0)
        if found.refresh_s > REST_REFRESH_S and self._prometheus is None:
            self._report(
                f"metrics there are up to {found.refresh_s:g} s old, so measuring takes longer "
                f"(set metrics.fetcher.update-interval to 1000)",
                1.0,
            )
