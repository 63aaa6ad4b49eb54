"""Runs of the policies that place shared slots: planned, simulated, and measured on Flink."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.flink.burning_job.lab import SETTLE_S, Lab, compile_on, lab
from benchmarks.flink.burning_job.piloting import rescaled
from benchmarks.flink.burning_job.profiling import Profiled
from benchmarks.flink.burning_job.shapes import CORES, MEMORY_MB, WORKERS, Shape
from benchmarks.placement.runs import physical
from flink_client.metrics.readings import RestReadings
from flink_client.rest.client import FlinkRest
from models.job import Job, records_in_per_source_record
from models.placement.graph.slot_sharing import with_shared_slots
from models.placement.shared.place import place_shared
from models.placement.shared.results import SharedPlacement, SharedPolicy
from models.placement.shared.sharing import SharedDataflow
from models.plan.parts import Placement
from models.plan.slots import subtasks_in
from models.schema import Format, NonNegative, Positive, PositiveInt, Ratio
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace
from testbeds.flink.lab.stolen import StolenTime
from testbeds.flink.local.distribution import Release
from testbeds.flink.local.profile import TaskManager
from testbeds.flink.measuring.cpu_time import CpuMeter
from testbeds.flink.measuring.meter import CounterMeter, NoNews
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator
from testbeds.simulator.settings import Physics

MEASURE_S: Final = 15.0
QUOTA_USED, TRIES = 0.95, 3
POLICIES: Final[tuple[SharedPolicy, ...]] = ("caps", "default", "evenly", "tasks")


def settings(policy: SharedPolicy, release: Release) -> dict[str, str]:
    """Flink's settings of a policy."""
    old = release.line == "1.20"
    evenly = {"cluster.evenly-spread-out-slots": "true"} if old else {"taskmanager.load-balance.mode": "SLOTS"}
    return {"evenly": evenly, "tasks": {"taskmanager.load-balance.mode": "TASKS"}}.get(policy, {})


class Measurement(Format):
    """One run of one policy."""

    policy: SharedPolicy
    placement: dict[str, dict[str, PositiveInt]]
    rate: Positive
    """Records/s that the sources emitted."""
    cpu: dict[str, NonNegative]
    """Cores that each TaskManager used."""
    stolen: Ratio
    """Share of the machine's CPU time that a hypervisor took."""
    machine_load: NonNegative
    """Mean of the last minute."""

    @property
    def used_a_quota(self) -> bool:
        return max(self.cpu.values()) >= QUOTA_USED * CORES


@dataclass(frozen=True)
class Case:
    """A shape on one release, with its profile."""

    shape: Shape
    release: Release
    profile: Profiled
    piloted: bool = False
    """An autopilot takes the job to its tasks, from half of them; else it is started with them."""

    @property
    def job(self) -> Job:
        return self.profile.job

    @property
    def shared(self) -> SharedDataflow:
        return SharedDataflow.of(physical(self.job, self.shape.parallelism, self.most), self.job.deployed_vertices)

    @property
    def most(self) -> float:
        """Records/s that all quotas together would take, if they were one processor."""
        ratio = records_in_per_source_record(self.job)
        return (
            WORKERS * (CORES - self.profile.idle_cores) / sum(ratio[o.name] * o.cost.cpu_s for o in self.job.operators)
        )

    def simulated(self, placement: Placement) -> float:
        """Records/s that the simulator takes; it has a slot for each task."""
        cluster = with_shared_slots(self.shape.cluster, self.shared.dataflow, self.shared.group_of)
        for_tasks = {"cores": CORES - self.profile.idle_cores}
        cluster = cluster.model_copy(update={"workers": tuple(w.model_copy(update=for_tasks) for w in cluster.workers)})
        configuration = Configuration(self.shape.parallelism, MEMORY_MB, placement)
        with Simulator(cluster, (MEMORY_MB,), Physics().ideal()).deploy(
            self.job, configuration, run="b", seed=1
        ) as run:
            run.inject(2 * self.most, 60.0, "warmup")
            return run.inject(2 * self.most, 60.0, "observe").achieved_rate

    def planned(self, workspace: Workspace) -> SharedPlacement:
        """The plan of CAPS, made once."""
        return workspace.once(
            f"{self.folder}/plan.json",
            {"shape": digest(str(self.shape)), "job": digest(self.job)},
            SharedPlacement,
            lambda: place_shared(self.shared, self.shape.cluster, clock=time.monotonic),
        )

    @property
    def folder(self) -> str:
        """In the workspace."""
        return f"{self.release.line}/{self.shape.name}" + ("/autopilot" if self.piloted else "")

    def measure(self, policy: SharedPolicy, runs: int, workspace: Workspace) -> list[Measurement]:
        """The runs of a policy, those that are stored included."""
        hooked = policy == "caps"
        plan = self.planned(workspace) if hooked and not self.piloted else None
        inputs = {"shape": digest(str(self.shape)), "plan": "Flink's" if plan is None else digest(plan)}
        keys = [f"{self.folder}/{policy}/{number:03}.json" for number in range(runs)]
        started: list[Lab] = []
        workers = [TaskManager(w.name, w.slots, MEMORY_MB, cores=w.cores) for w in self.shape.cluster.workers]
        opened = lab(self.release, workers, settings(policy, self.release), hooked=hooked)

        def make() -> Measurement:
            if not started:
                started.append(opened.__enter__())
                compile_on(started[0], self.shape, self.shape.cluster.slots)
                self._run(started[0], policy, plan)  # not counted: what only heavy records use is compiled in it
            return self._undisturbed(lambda: self._run(started[0], policy, plan))

        try:
            return [workspace.once(key, inputs, Measurement, make) for key in keys]
        finally:
            if started:
                opened.__exit__(None, None, None)

    @staticmethod
    def _undisturbed(run: Callable[[], Measurement]) -> Measurement:
        """The first of at most TRIES runs in which a TaskManager used its quota, else the last. Since sources emit all that
        the job takes, one does, unless the machine's processors are used by others."""
        for remaining in reversed(range(TRIES)):
            try:
                found = run()
            except NoNews:
                if not remaining:
                    raise
                continue
            if found.used_a_quota or not remaining:
                break
        return found

    def _run(self, lab: Lab, policy: SharedPolicy, plan: SharedPlacement | None) -> Measurement:
        tasks = self.shape.parallelism
        program = lab.program(self.shape, {name: -(-n // 2) for name, n in tasks.items()} if self.piloted else tasks)
        ids = lab.ids(program, self.shape)
        placed = [] if plan is None else subtasks_in(plan.slots, dict.fromkeys(tasks, "default"))
        lab.cluster.place([task._replace(vertex=ids[task.vertex]) for task in placed])
        with lab.running(program) as job:
            lab.cluster.limit_cpu(True)
            if self.piloted:
                rescaled(lab.rest, job, tasks)
            time.sleep(SETTLE_S)
            stolen = StolenTime()
            rate, cpu = _seen(lab.rest, job, ids[self.shape.vertices[0].name])
            return Measurement(
                policy=policy,
                placement=_where(lab.rest, job, ids),
                rate=rate,
                cpu=cpu,
                stolen=min(stolen.share(), 1.0),
                machine_load=os.getloadavg()[0],
            )


def _seen(rest: FlinkRest, job: str, source: str) -> tuple[float, dict[str, float]]:
    """Records/s of the source, and cores that each TaskManager used, over MEASURE_S."""
    readings = RestReadings(rest, job)
    vertices = rest.job(job).vertices
    counters = CounterMeter(readings, [v for v in vertices if v.id == source], [])
    cpu = CpuMeter(readings, [one.id for one in rest.task_managers()])
    begin = time.monotonic() + 2.0
    window = [begin, begin + MEASURE_S]
    while not (counters.covers(*window) and cpu.covers(*window)):
        if time.monotonic() > window[-1] + 30.0:
            raise NoNews("Flink did not report on the sources and TaskManagers in time; measure again")
        counters.read()
        cpu.read()
        time.sleep(0.3)
    emitted = sum(float(task["numRecordsOut"][0]) for task in counters.increments(window).values())
    return emitted / MEASURE_S, {name: float(used[0]) / MEASURE_S for name, used in cpu.increments(window).items()}


def _where(rest: FlinkRest, job: str, ids: Mapping[str, str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for name, id_ in ids.items():
        for task in rest.subtasks(job, id_):
            own = found.setdefault(task.task_manager, {})
            own[name] = own.get(name, 0) + 1
    return found
