"""Starts a job on a cluster: its program, the vertex of each operator, and the placement of its tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

from flink_client.jobs.job_graph import vertices_of
from flink_client.rest.answers import Vertex
from flink_client.rest.client import FlinkRest
from flink_client.rest.jars import JarProgram
from models.errors import SluiceError
from models.job import Job
from models.plan.slots import PlacedTask
from testbeds.flink.cluster import FlinkCluster
from testbeds.flink.programs.stated_costs import Payment, dataflow_program
from testbeds.flink.programs.user_programs import UserProgram, source_name, submitted
from testbeds.placing import Placed

_START_S: Final = 120.0
_SOURCE_PREFIX: Final = "Source: "


@dataclass(frozen=True)
class Deployed:
    """A job whose tasks all run."""

    id: str
    vertices: Mapping[str, Vertex]
    """Vertex of each operator."""
    workers: Mapping[tuple[str, int], str]
    """TaskManager of each task, by operator and number."""
    sources: Mapping[str, str]
    """Name under which the rate of each source is set, by operator; empty where the sources read Kafka."""
    passed_on: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Records that a source emits per record that it takes in, by operator; 1 where absent."""


@dataclass(frozen=True)
class Submission:
    """A job that can be started repeatedly with any numbers of tasks."""

    cluster: FlinkCluster
    job: Job
    address: str
    """HOST:PORT of what feeds its sources: that sets their rates, or the Kafka brokers."""
    seed: int
    program: UserProgram | None
    """Its program; None: operators with the job's stated costs, paid as `payment` says."""
    payment: Payment
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Flink settings of the job."""

    def start(self, parallelism: Mapping[str, int], placed: Placed | None, savepoint: str | None = None) -> Deployed:
        """Run the job, and check that its tasks are where they were placed.

        Args:
            placed: the placement of its tasks; None: Flink places them.

        Raises:
            InvalidInput: Flink refused the program, or its SQL is not the dataflow of the job.
            SluiceError: it failed at its start.
        """
        rest = self.cluster.rest
        jar, program, vertices, sources = self._planned(parallelism)
        if placed is not None:
            workers = task_workers(placed)
            self.cluster.place(placed_tasks(workers, vertices))
        id_ = rest.run(jar, program, savepoint=savepoint, job=self.cluster.new_job_id())
        try:
            if placed is None:
                rest.wait_until_running(id_, _START_S, {v.id: v.parallelism for v in vertices.values()})
                workers = running_workers(rest, id_, vertices)
            else:
                rest.wait_until_running(id_, _START_S)
            stated = {o.name: o.selectivity for o in self.job.sources} if self.program is None else {}
            deployed = Deployed(id_, vertices, workers, sources, stated)
            check_placed(rest, deployed)
        except BaseException:
            rest.cancel(id_)
            raise
        return deployed

    def _planned(self, parallelism: Mapping[str, int]) -> tuple[str, JarProgram, dict[str, Vertex], dict[str, str]]:
        """The jar and its arguments, with the vertex of each operator and the name of each source."""
        rest, address = self.cluster.rest, self.address
        names = [o.name for o in self.job.sources]
        if self.program is None:
            jar = self.cluster.uploaded(self.cluster.kit)
            program = dataflow_program(
                self.job, parallelism, address, self.settings, payment=self.payment, seed=self.seed
            )
            vertices = {v.name.removeprefix(_SOURCE_PREFIX): v for v in rest.plan(jar, program)[0]}
            return jar, program, vertices, {name: name for name in names}
        jar, program = submitted(self.program, self.job.name, self.cluster, address, self.seed)
        planned = vertices_of(self.job, *rest.plan(jar, program))
        vertices = {name: replace(v, parallelism=parallelism[name]) for name, v in planned.items()}
        program = program.with_parallelism({v.id: v.parallelism for v in vertices.values()})
        program = replace(program, settings={**program.settings, **self.settings})
        rated = {} if self.program.kafka is not None else {name: source_name(vertices[name]) for name in names}
        return jar, program, vertices, rated


def task_workers(placed: Placed) -> dict[tuple[str, int], str]:
    """TaskManager of each task, by operator and number."""
    return {
        (name, task): placed.workers[at].name
        for name, of_operator in placed.task_workers.items()
        for task, at in enumerate(of_operator)
    }


def placed_tasks(workers: Mapping[tuple[str, int], str], vertices: Mapping[str, Vertex]) -> list[PlacedTask]:
    """The tasks of vertices by id, each in a slot of its own.

    Args:
        workers: TaskManager of each task, by operator and number.
        vertices: by operator.
    """
    return [PlacedTask(vertices[name].id, task, worker) for (name, task), worker in workers.items()]


def running_workers(rest: FlinkRest, job: str, vertices: Mapping[str, Vertex]) -> dict[tuple[str, int], str]:
    """TaskManager of each task of a running job, by operator and number.

    Args:
        vertices: by operator.
    """
    return {
        (name, one.index): one.task_manager
        for name, vertex in vertices.items()
        for one in rest.subtasks(job, vertex.id)
    }


def check_placed(rest: FlinkRest, deployed: Deployed) -> None:
    """Check that the running tasks are the requested ones.

    Raises:
        SluiceError: a task runs elsewhere, or the number of tasks differs.
    """
    for name, vertex in deployed.vertices.items():
        running = {one.index: one.task_manager for one in rest.subtasks(deployed.id, vertex.id)}
        wanted = {task: worker for (operator, task), worker in deployed.workers.items() if operator == name}
        for task in sorted(wanted.keys() | running.keys()):
            if running.get(task) != wanted.get(task):
                raise SluiceError(
                    f"task {task} of {name!r} should run on {wanted.get(task, 'no TaskManager')!r}, but Flink runs it on "
                    f"{running.get(task, 'none')!r}; check that the kit's jar comes first on the class path of the JobManager"
                )
