"""The program is measured through `sluice plan --testbed flink --feed kafka --flink ...`, and planned for objectives."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml
from rich.console import Console

from benchmarks.running.kafka_job.program import program_jar
from models.plan.content import Plan
from pipelines.inputs.plan_request import PlanRequest
from pipelines.progress import LineProgress
from pipelines.registry.selection_record import SELECTION_FILE
from pipelines.run import PipelineRun
from pipelines.stages import run_all, run_stage
from pipelines.store.plans import PlanStore
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import Release
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.programs.user_programs import BROKERS, UserJar
from testbeds.kafka.feeding.feeder import GeneratedFeed
from testbeds.kafka.supply import FedTopic, KafkaFeed

NOTES: Final = Console(stderr=True, width=180)
FOLDER: Final = "objectives"
RUN: Final = "objectives-measured"
"""All plans are of the measurements of one run."""
JOB: Final = "objectives"
TOPIC: Final = "events"
GROUP: Final = "objectives"
PARTITIONS: Final = 8
COSTS_US: Final = (1500, 8000, 1500)
"""What parsing, counting and storing a record waits."""
KEYS: Final = 1000
ARGUMENTS: Final = (BROKERS, TOPIC, GROUP, *map(str, COSTS_US), "0.0", "false")
FEED: Final = KafkaFeed((FedTopic(TOPIC, PARTITIONS, GeneratedFeed(TOPIC, keys=KEYS)),))
CHECKPOINTS_S: Final = 5.0
"""Between checkpoints of the planned job."""
MEMORY_MB: Final = 1400.0
MEASURED_ON: Final = (3, 8)
"""TaskManagers, and slots of each."""
MOST_SLOTS: Final = 8
"""With which it is measured; the plans take more."""
MOST_MEASUREMENTS: Final = 3
KINDS: Final = (
    {"name": "small", "slots": 4, "memory_mb": MEMORY_MB, "price_per_hour": 0.25},
    {"name": "large", "slots": 16, "memory_mb": MEMORY_MB, "price_per_hour": 1.10},
)
GIVEN: Final = {"name": "given", "count": 6, "slots": 4, "memory_mb": MEMORY_MB, "price_per_hour": 0.25}
"""Workers that are there anyway, of which a plan takes those that a price allows."""


@dataclass(frozen=True)
class Asked:
    """What a plan is asked for."""

    rate: float
    """Records/s."""
    objective: str
    headroom: float | None = None
    """In place of the default risk."""
    cluster: str = "cloud"
    """File of the workers: the kinds that are offered, or those that are there."""


@dataclass(frozen=True)
class Program:
    """The program's files, kept in the workspace, so that a killed run repeats no measurement."""

    folder: Path
    workspace: Workspace
    release: Release

    @classmethod
    def of(cls, workspace: Workspace, release: Release) -> "Program":
        made = cls(workspace.local_folder(FOLDER, "program"), workspace, release)
        made.folder.mkdir(parents=True, exist_ok=True)
        if not made.jar.exists():
            program_jar(made.folder, release)
        made.write("cloud", {"name": "cloud", "kinds": list(KINDS)})
        made.write("given", GIVEN)
        made.write(
            JOB,
            {
                "name": JOB,
                "jar": made.jar.name,
                "entry_class": "KafkaJob",
                "arguments": list(ARGUMENTS),
                "topics": {TOPIC: {"partitions": PARTITIONS, "keys": KEYS}},
            },
        )
        return made

    @property
    def jar(self) -> Path:
        return self.folder / "kafka-job.jar"

    @property
    def user_jar(self) -> UserJar:
        """As the testbed submits it: each task in a slot of its own."""
        return UserJar(self.jar, "KafkaJob", ARGUMENTS, FEED)

    def file(self, name: str) -> str:
        return str(self.folder / f"{name}.yaml")

    def write(self, name: str, content: dict[str, object]) -> None:
        Path(self.file(name)).write_text(yaml.safe_dump(content), encoding="utf-8")

    @property
    def is_measured(self) -> bool:
        return self.workspace.exists(f"runs/{JOB}/{RUN}/{SELECTION_FILE}")

    @contextmanager
    def measurable(self) -> Iterator[None]:
        """A Flink to measure on, with the processors of the machine; none where all has been measured.

        Measurements on a Flink at another address do not count as the same, so a run that is killed before that begins again.
        """
        if self.is_measured:
            yield
            return
        count, slots = MEASURED_ON
        with LocalCluster(release=self.release) as cluster:
            cluster.ensure(Profile(tuple(TaskManager(f"tm{i}", slots, MEMORY_MB) for i in range(count))))
            address = {"rest_url": cluster.rest.url}
            self.write("measured-on", {"name": "measured-on", "count": count, "slots": slots, "flink": address})
            yield

    def planned(self, asked: Asked) -> Plan:
        """As `sluice plan` does inside `measurable` the first time; then from the same measurements."""
        request = PlanRequest(
            job=self.file(JOB),
            rate=asked.rate,
            cluster=self.file(asked.cluster),
            testbed="flink",
            flink=self.file("measured-on"),
            feed="kafka",
            objective=asked.objective,
            headroom=asked.headroom,
            max_task_slots=MOST_SLOTS,
            max_measurements=MOST_MEASUREMENTS,
            run=RUN,
        )
        run = PipelineRun(request, self.workspace, LineProgress(NOTES.print))
        if self.is_measured:  # as a replan does, with a twin of today's version
            run.start()
            for name in ("twin", "size", "scale", "place", "publish"):
                run_stage(name, run)
        else:
            run_all(run)
        return PlanStore(self.workspace).current(JOB)
