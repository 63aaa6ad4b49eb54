"""A job with a plan's tasks on a plan's TaskManagers, fed at the planned rate; stopped and started again where asked."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from benchmarks.objectives.planning import CHECKPOINTS_S, GROUP, JOB, MEMORY_MB, TOPIC, Program
from benchmarks.objectives.recording import REFRESH, Recorder
from flink_client.rest.answers import ENDED
from flink_client.rest.waiting import wait_for
from models.job import Job
from models.plan.content import Plan
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.stated_costs import Payment
from testbeds.flink.programs.user_programs import planned_job
from testbeds.flink.submission import Deployed, Submission
from testbeds.kafka.connection import KafkaConnection
from testbeds.kafka.offsets import OffsetReader
from testbeds.kafka.supply import FedTopics, KafkaSupply

START_S: Final = 120.0
RESTART_S: Final = 4.0
"""From the start of a job until its source reads, about."""
OF_JOB: Final[Mapping[str, str]] = {
    "execution.checkpointing.interval": f"{CHECKPOINTS_S:g} s",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
}


@dataclass
class Running:
    """The job, what feeds it, and what is recorded of it."""

    submission: Submission
    tasks: Mapping[str, int]
    fed: FedTopics
    recorder: Recorder
    connection: KafkaConnection
    rate: float
    """Records/s that it is fed."""
    deployed: Deployed | None = None
    checkpoint: str | None = field(default=None)

    def start(self) -> None:
        restored = None if self.checkpoint is None else self._committed()
        self.deployed = self.submission.start(self.tasks, None, self.checkpoint)
        (source,) = (o.name for o in self.submission.job.sources)
        self.recorder.follow(self.deployed.id, self.deployed.vertices[source].id, restored)

    def offer(self, rate: float) -> None:
        """From now on feed these records/s."""
        self.fed.offer(rate)

    def wait_until_it_reads(self) -> None:
        wait_for(lambda: self.reads or None, START_S, "the first record")

    @property
    def reads(self) -> bool:
        """Whether it has read a record since it was started."""
        last = self.recorder.last()
        return last is not None and self.deployed is not None and last.job == self.deployed.id and last.read is not None

    def stop(self) -> None:
        """Cancel it; what it has read since its last checkpoint is read again."""
        assert self.deployed is not None
        rest, job = self.submission.cluster.rest, self.deployed.id
        rest.cancel(job)
        self.recorder.lose()
        wait_for(lambda: rest.job(job).state in ENDED or None, START_S, "the end of the job")
        self.checkpoint = str(rest.get(f"/jobs/{job}/checkpoints")["latest"]["completed"]["external_path"])

    def waiting(self) -> float:
        """Records that wait in the log, as of the last look; those of a job that has not read yet are not known."""
        last = self.recorder.last()
        return math.inf if last is None or last.read is None else last.arrived - last.read

    def task_managers(self) -> int:
        """Those that run tasks."""
        assert self.deployed is not None
        return len(set(self.deployed.workers.values()))

    def _committed(self) -> dict[int, int]:
        reading = OffsetReader(self.connection, [TOPIC], GROUP).read()
        return {one.partition: one.committed for one in reading.partitions if one.committed is not None}


@contextmanager
def running(program: Program, plan: Plan, tasks: Mapping[str, int], supply: KafkaSupply) -> Iterator[Running]:
    """A Flink of the TaskManagers that the plan takes, and the job on it with these tasks, which has begun to read."""
    assert plan.resources is not None and plan.slots_per_worker is not None
    managers = [TaskManager(f"tm{i}", plan.slots_per_worker, MEMORY_MB) for i in range(plan.resources.task_managers)]
    with LocalCluster(release=program.release) as cluster, supply.feed() as fed:
        cluster.ensure(Profile(tuple(managers), REFRESH))
        user = program.user_jar
        job: Job = planned_job(user, JOB, cluster)
        address = supply.connection.bootstrap
        submission = Submission(cluster, job, address, 0, user, Payment.PACED, OF_JOB)
        with Recorder(cluster.rest.url, supply.connection, TOPIC) as recorder:
            run = Running(submission, tasks, fed, recorder, supply.connection, plan.target_rate)
            run.start()
            run.offer(plan.target_rate / 2)
            run.wait_until_it_reads()
            try:
                yield run
            finally:
                if run.deployed is not None:
                    cluster.rest.cancel(run.deployed.id)
