"""Starting a job on a local cluster: its program, its operators' vertices, and its tasks where they were placed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from models.errors import SluiceError
from models.job import Job
from testbeds.flink.answers import Vertex
from testbeds.flink.control import SourceControl
from testbeds.flink.graph import table_of, vertices_of
from testbeds.flink.processes import LocalCluster
from testbeds.flink.programs import (
    UNCHAINED,
    Payment,
    dataflow_program,
    sql_program,
    whole_script,
    with_tasks,
)
from testbeds.flink.rest import Program
from testbeds.placing import Placed

_START_S: Final = 120.0
_SOURCE_PREFIX: Final = "Source: "


@dataclass(frozen=True)
class Deployed:
    """A job whose tasks all run."""

    id: str
    vertices: Mapping[str, Vertex]
    """By operator."""
    workers: Mapping[tuple[str, int], str]
    """TaskManager of each task, by operator and number."""
    sources: Mapping[str, str]
    """What each source is called where its rate is set, by operator."""


@dataclass(frozen=True)
class Submission:
    """A job that can be started with any numbers of tasks, again and again."""

    local: LocalCluster
    job: Job
    control: SourceControl
    seed: int
    script: str | None
    """The SQL it runs as; None: operators that cost what the job states, paid as `payment` says."""
    payment: Payment

    def start(self, parallelism: Mapping[str, int], placed: Placed, savepoint: str | None = None) -> Deployed:
        """Run the job, and check that its tasks are where they were placed.

        Raises:
            InvalidInput: Flink refused the program, or its SQL is not the dataflow of the job.
            SluiceError: it failed at its start.
        """
        rest, jar = self.local.rest, self.local.jar_id
        program, vertices, sources = self._planned(parallelism)
        workers = task_workers(placed)
        self.local.place({(vertices[name].id, task): worker for (name, task), worker in workers.items()})
        id_ = rest.run(jar, program, savepoint=savepoint)
        try:
            rest.wait_until_running(id_, _START_S)
            deployed = Deployed(id_, vertices, workers, sources)
            check_placed(self.local, deployed)
        except BaseException:
            rest.cancel(id_)
            raise
        return deployed

    def _planned(self, parallelism: Mapping[str, int]) -> tuple[Program, dict[str, Vertex], dict[str, str]]:
        """What to run, with the vertex of each operator and what each source is called."""
        rest, jar = self.local.rest, self.local.jar_id
        names = [o.name for o in self.job.sources]
        if self.script is None:
            program = dataflow_program(
                self.job, parallelism, self.control.address, {}, payment=self.payment, seed=self.seed
            )
            vertices = {v.name.removeprefix(_SOURCE_PREFIX): v for v in rest.plan(jar, program)[0]}
            return program, vertices, {name: name for name in names}
        script = whole_script(self.script, self.control.address, self.seed)
        program = sql_program(self.job.name, script, UNCHAINED, slot_per_task=True)
        planned = vertices_of(self.job, *rest.plan(jar, program))
        vertices = {name: replace(v, parallelism=parallelism[name]) for name, v in planned.items()}
        program = with_tasks(program, {v.id: v.parallelism for v in vertices.values()})
        return program, vertices, {name: table_of(vertices[name]) for name in names}


def task_workers(placed: Placed) -> dict[tuple[str, int], str]:
    """TaskManager of each task, by operator and number."""
    return {
        (name, task): placed.workers[at].name
        for name, of_operator in placed.task_workers.items()
        for task, at in enumerate(of_operator)
    }


def check_placed(local: LocalCluster, deployed: Deployed) -> None:
    """What runs is what was asked for.

    Raises:
        SluiceError: a task runs elsewhere, or there are other numbers of them.
    """
    for name, vertex in deployed.vertices.items():
        running = {one.index: one.task_manager for one in local.rest.subtasks(deployed.id, vertex.id)}
        wanted = {task: worker for (operator, task), worker in deployed.workers.items() if operator == name}
        for task in sorted(wanted.keys() | running.keys()):
            if running.get(task) != wanted.get(task):
                raise SluiceError(
                    f"task {task} of {name!r} was to run on {wanted.get(task, 'no TaskManager')!r}, but Flink has it on "
                    f"{running.get(task, 'none')!r}; check that the kit's jar comes first on the class path of the JobManager"
                )
