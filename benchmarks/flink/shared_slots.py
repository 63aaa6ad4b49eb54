"""Placement of shared slots under CPU quotas of the operating system, on a real Flink and on the simulator.

    python -m benchmarks.flink.shared_slots [--shapes inference,branches] [--releases 2.3,1.20] [--policies caps,...]
        [--runs 5] [--workspace FOLDER] [--table]

A control group gives each of 4 TaskManagers 0.35 cores of this machine. The program (`burning_job/`) knows nothing of Sluice:
its vertices hash records, so they burn CPU, some much and some little; its sources emit as much as the job takes. All
vertices are in one slot sharing group.

1. *profile*: each vertex runs with one task on a TaskManager of its own, and is observed as by `sluice observe`. That gives
   the CPU time and bytes of a record. What a TaskManager uses without a job is measured apart.
2. *caps* places slots by these costs, and the placement hook applies them. *default*, *evenly* (2.3:
   `taskmanager.load-balance.mode: SLOTS`, 1.20: `cluster.evenly-spread-out-slots`) and *tasks*
   (`taskmanager.load-balance.mode: TASKS`, since Flink 2.3) are Flink's own, on a Flink without the hook; where their tasks
   are is read from Flink.
3. A new cluster runs all vertices on all slots for 15 s, with light records, so that every JVM compiles the program. Each of
   the five runs of a policy submits the job, sets the quotas, lets it settle for 9 s, and measures for 15 s what the sources
   emit. The first run on a cluster is not counted. A run in which no TaskManager used 95 % of its quota is repeated, since
   others used the machine then. The simulator runs the same placement with the costs of 1, on the quotas less what a
   TaskManager uses without a job.

All the time a process of low priority (`nice` 19) hashes on every processor: processors that share a core slow one another
down, by half where this was tried, so that the cost of a record would depend on what else runs.

The rankings are compared over different plans, by the median of the runs of each. Beside Kendall's tau it prints one that
takes plans as equal where they differ by less than the repeatability of medians of their runs (`tau_with_ties`).

A policy takes about three minutes. Measurements are stored, so that it can be stopped and started again; `--table` adds
what is missing, simulates, and prints tables.
"""

import argparse
import itertools
import json
import math
import os
import statistics
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table
from scipy.stats import kendalltau

from benchmarks.placement.runs import physical, spread_of
from flink_client.metrics.readings import RestReadings
from flink_client.rest import FlinkRest, JarProgram
from models.cluster import Cluster
from models.job import Job, records_in_per_source_record
from models.placement.graph.slot_sharing import with_shared_slots
from models.placement.shared.place import place_shared
from models.placement.shared.results import SharedPlacement, SharedPolicy
from models.placement.shared.sharing import SharedDataflow
from models.plan import Placement
from models.schema import Format, NonNegative, Positive, PositiveInt, Ratio
from models.slots import PlacedTask, subtasks_in
from pipelines.observe.observation import observe_job
from pipelines.progress import Quiet
from pipelines.store.digests import digest
from pipelines.store.workspace import Workspace
from testbeds.flink.lab.stolen import StolenTime
from testbeds.flink.local.distribution import Release, flink_home, release_of
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.flink.measuring.cpu_time import CpuMeter
from testbeds.flink.measuring.meter import CounterMeter, NoNews
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator
from testbeds.simulator.settings import Physics

HERE: Final = Path(__file__).parent / "burning_job"
WORKSPACE: Final = Path(".sluice/benchmarks/flink-shared-slots")
WORKERS, CORES, MEMORY_MB = 4, 0.35, 1024.0
PROFILE_S, IDLE_S, COMPILE_S, SETTLE_S, MEASURE_S, START_S = 30.0, 8.0, 15.0, 7.0, 15.0, 180.0
PROFILE_CORES, LEAST_CORES = 1.4, 0.2
QUOTA_USED, TRIES = 0.95, 3
LOW_PRIORITY: Final = 19
REPEATABLE: Final = 1.96
"""Two results of equal conditions differ by more than this many standard deviations of their difference in 5 % of all cases
(ISO 5725-6, repeatability limit)."""
POLICIES: Final[tuple[SharedPolicy, ...]] = ("caps", "default", "evenly", "tasks")


def settings(policy: SharedPolicy, release: Release) -> dict[str, str]:
    """Flink's settings of a policy."""
    old = release.line == "1.20"
    evenly = {"cluster.evenly-spread-out-slots": "true"} if old else {"taskmanager.load-balance.mode": "SLOTS"}
    return {"evenly": evenly, "tasks": {"taskmanager.load-balance.mode": "TASKS"}}.get(policy, {})


@dataclass(frozen=True)
class Vertex:
    """A vertex of the program."""

    name: str
    tasks: int
    rounds: int
    """Of SHA-256 for each record."""
    inputs: str = ""

    def argument(self, tasks: int) -> str:
        return f"{self.name}={tasks}={self.rounds}={self.inputs}"


@dataclass(frozen=True)
class Shape:
    """A job, and the slots of each TaskManager."""

    name: str
    slots: int
    vertices: tuple[Vertex, ...]

    @property
    def cluster(self) -> Cluster:
        fields = {"name": self.name, "count": WORKERS, "slots": self.slots, "cores": CORES, "memory_mb": MEMORY_MB}
        return Cluster.model_validate(fields)

    @property
    def parallelism(self) -> dict[str, int]:
        return {v.name: v.tasks for v in self.vertices}


SHAPES: Final = {
    one.name: one
    for one in (
        # The shape, tasks and proportions of CAPSys' Q3-inf in placement.py.
        Shape(
            "inference",
            2,
            (
                Vertex("frames", 3, 900),
                Vertex("blur", 5, 8500, "frames"),
                Vertex("shrink", 4, 2400, "blur"),
                Vertex("classify", 3, 3300, "shrink"),
                Vertex("archive", 1, 100, "classify"),
            ),
        ),
        # Two narrow, heavy vertices beside wide, light ones, on TaskManagers of one slot.
        Shape(
            "branches",
            1,
            (
                Vertex("orders", 4, 1500),
                Vertex("enrich", 4, 3000, "orders"),
                Vertex("score", 2, 4500, "enrich"),
                Vertex("match", 2, 3400, "enrich"),
                Vertex("notify", 1, 400, "score,match"),
            ),
        ),
    )
}


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
class Lab:
    """A running cluster with the program."""

    cluster: LocalCluster
    jar: str

    @property
    def rest(self) -> FlinkRest:
        return self.cluster.rest

    def program(self, shape: Shape, parallelism: Mapping[str, int]) -> JarProgram:
        return JarProgram("BurningJob", (shape.name, *(v.argument(parallelism[v.name]) for v in shape.vertices)), {})

    def ids(self, program: JarProgram, shape: Shape) -> dict[str, str]:
        """Flink's id of each vertex."""
        planned = self.rest.plan(self.jar, program)[0]
        return {v.name: next(one.id for one in planned if v.name in one.name) for v in shape.vertices}

    @contextmanager
    def running(self, program: JarProgram) -> Iterator[str]:
        job = self.rest.run(self.jar, program)
        try:
            self.rest.wait_until_running(job, START_S)
            yield job
        finally:
            self.rest.cancel(job)


@contextmanager
def lab(release: Release, workers: Sequence[TaskManager], settings: Mapping[str, str], hooked: bool) -> Iterator[Lab]:
    with tempfile.TemporaryDirectory() as folder, LocalCluster(release=release, hooked=hooked) as cluster:
        jar = _built(Path(folder), release)
        with _neighbour(jar):
            cluster.ensure(Profile(tuple(workers), settings))
            assert cluster.has_cpu_quotas, "control groups cannot be written here, so that nothing would limit the CPU"
            yield Lab(cluster, cluster.rest.upload(jar))


@contextmanager
def _neighbour(jar: Path) -> Iterator[None]:
    """Work of low priority on every processor."""
    command = [
        "nice",
        "-n",
        f"{LOW_PRIORITY}",
        str(find_jdk() / "bin" / "java"),
        "-Xmx8m",
        "-cp",
        str(jar),
        "Neighbour",
    ]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    try:
        yield
    finally:
        process.kill()
        process.communicate()


def _built(folder: Path, release: Release) -> Path:
    home = flink_home(release=release)
    compile_java(sorted((HERE / "java").glob("*.java")), folder / "classes", f"{home}/lib/*", find_jdk())
    made = folder / "burning-job.jar"
    with zipfile.ZipFile(made, "w") as jar:
        for path in sorted((folder / "classes").rglob("*.class")):
            jar.write(path, str(path.relative_to(folder / "classes")))
    return made


def compile_on(lab: Lab, shape: Shape, slots: int) -> None:
    """Let every JVM compile what a record passes, by many light records on all slots: of heavy ones few pass in minutes."""
    light = replace(shape, vertices=tuple(replace(v, rounds=1) for v in shape.vertices))
    with lab.running(lab.program(light, dict.fromkeys(shape.parallelism, slots))):
        lab.cluster.limit_cpu(True)  # so that it goes before other work; compilers are exempt
        time.sleep(COMPILE_S)


class Profiled(Format):
    """What a record takes at each vertex, and a TaskManager without records."""

    job: Job
    idle_cores: NonNegative


def profiled(shape: Shape, release: Release) -> Profiled:
    """The job as observed with each vertex on a TaskManager of its own, with the names of `shape`.

    Quotas in proportion to what vertices hash, so that all are about equally busy, and under quotas as later. CPU time that a
    TaskManager takes without records is no record's: beside light vertices it would count as much as they do.
    """
    names, rounds = [v.name for v in shape.vertices], sum(v.rounds for v in shape.vertices)
    alone = [
        TaskManager(f"profile-{v.name}", 1, MEMORY_MB, cores=max(PROFILE_CORES * v.rounds / rounds, LEAST_CORES))
        for v in shape.vertices
    ]
    with lab(release, alone, {}, hooked=True) as started, tempfile.TemporaryDirectory() as folder:
        compile_on(started, shape, len(names))
        program = started.program(shape, dict.fromkeys(names, 1))
        ids = started.ids(program, shape)
        started.cluster.place([PlacedTask(ids[name], 0, f"profile-{name}", 0) for name in names])
        with started.running(program):
            time.sleep(COMPILE_S)
        idle = _idle_cores(started.rest)
        with started.running(program) as job:
            started.cluster.limit_cpu(True)
            time.sleep(SETTLE_S)
            observed = observe_job(started.rest, job, PROFILE_S, Workspace(folder), Quiet())
    text = observed.as_job().model_dump_json(by_alias=True)
    for id_, name in observed.operators.items():
        text = text.replace(f'"{name}"', f'"{next(known for known in names if ids[known] == id_)}"')
    document = json.loads(text)
    cores = {one.name: one.cores for one in observed.job.workers}
    rates = {one.id: one.observed_rate for one in observed.job.vertices}
    for operator in document["operators"]:
        used, rate = cores[f"profile-{operator['name']}"], rates[ids[operator["name"]]]
        assert used is not None and rate, f"nothing was seen of {operator['name']}; measure again"
        operator["cost"]["cpu_s"] = max(used - idle, 0.0) / rate
        if operator["kind"] != "sink":
            # What the program does. Observed while code is compiled, records in and out are of different seconds.
            operator["selectivity"] = 1.0
    return Profiled(job=Job.model_validate(document), idle_cores=idle)


def _idle_cores(rest: FlinkRest) -> float:
    """Cores that a TaskManager uses while no job runs: the least, since compilers may still run on others."""
    meter = CpuMeter(RestReadings(rest, ""), [one.id for one in rest.task_managers()])
    begin = time.monotonic() + 2.0
    while not meter.covers(begin, begin + IDLE_S):
        meter.read()
        time.sleep(0.3)
    return min(float(used[0]) for used in meter.increments([begin, begin + IDLE_S]).values()) / IDLE_S


@dataclass(frozen=True)
class Case:
    """A shape on one release, with its profile."""

    shape: Shape
    release: Release
    profile: Profiled

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
        return f"{self.release.line}/{self.shape.name}"

    def measure(self, policy: SharedPolicy, runs: int, workspace: Workspace) -> list[Measurement]:
        """The runs of a policy, those that are stored included."""
        plan = self.planned(workspace) if policy == "caps" else None
        inputs = {"shape": digest(str(self.shape)), "plan": "Flink's" if plan is None else digest(plan)}
        keys = [f"{self.folder}/{policy}/{number:03}.json" for number in range(runs)]
        started: list[Lab] = []
        workers = [TaskManager(w.name, w.slots, MEMORY_MB, cores=w.cores) for w in self.shape.cluster.workers]
        opened = lab(self.release, workers, settings(policy, self.release), hooked=plan is not None)

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
        program = lab.program(self.shape, self.shape.parallelism)
        ids = lab.ids(program, self.shape)
        if plan is not None:
            placed = subtasks_in(plan.slots, dict.fromkeys(self.shape.parallelism, "default"))
            lab.cluster.place([task._replace(vertex=ids[task.vertex]) for task in placed])
        with lab.running(program) as job:
            lab.cluster.limit_cpu(True)
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


def in_words(placement: Placement) -> str:
    """Each worker's tasks by their first letters; equal workers are interchangeable, so they are sorted."""
    return " ".join(sorted("".join(f"{n}{name[0]}" for name, n in tasks.items()) for tasks in placement.values()))


def tables(case: Case, found: Sequence[Measurement]) -> list[Table | str]:
    """Each run measured and simulated, the policies, and whether the rankings agree."""
    plans = {in_words(one.placement): one.placement for one in found}
    simulated = {plan: case.simulated(placement) for plan, placement in plans.items()}
    runs = Table(
        *("policy", "run", "tasks of each TaskManager", "measured", "simulated", "error", "cores used", "stolen"),
        title=f"{case.shape.name} on Flink {case.release.version}: records/s; all quotas as one would take {case.most:,.0f}",
    )
    for one in found:
        said = simulated[in_words(one.placement)]
        used = " ".join(f"{cores:.2f}" for cores in one.cpu.values())
        runs.add_row(
            *(
                one.policy,
                f"{[m for m in found if m.policy == one.policy].index(one)}",
                in_words(one.placement),
                f"{one.rate:,.0f}",
                f"{said:,.0f}",
            ),
            *(f"{said / one.rate - 1:+.0%}", used, f"{one.stolen:.1%}"),
        )
    policies = Table("policy", "runs", "measured: median (least, most)", "simulated", "of the best")
    best = max(_median(found, policy) for policy in {one.policy for one in found})
    for policy in POLICIES:
        own = [one for one in found if one.policy == policy]
        if own:
            measured = spread_of([one.rate for one in own], ",.0f")
            expected = spread_of([simulated[in_words(one.placement)] for one in own], ",.0f")
            policies.add_row(policy, f"{len(own)}", measured, expected, f"{_median(found, policy) / best:.0%}")
    return [
        runs,
        policies,
        agreement(simulated, {p: [m.rate for m in found if in_words(m.placement) == p] for p in plans}),
    ]


def agreement(simulated: Mapping[str, float], measured: Mapping[str, Sequence[float]]) -> str:
    """Whether the simulator ranks plans as the medians of their runs do."""
    medians = {plan: statistics.median(rates) for plan, rates in measured.items()}
    tau = kendalltau([simulated[plan] for plan in medians], list(medians.values())).statistic
    said = f"Kendall's tau over {len(medians)} different plans: {tau:.2f}"
    spread = repeatability(list(measured.values()))
    if spread is not None:
        numbers = {plan: len(rates) for plan, rates in measured.items()}
        tied = tau_with_ties(simulated, medians, numbers, spread)
        said += f"; with ties within the repeatability ({spread:.1%} between runs of one plan): {tied:.2f}"
    return said


def repeatability(runs: Sequence[Sequence[float]]) -> float | None:
    """Standard deviation of the logarithm of rates between runs of one plan, pooled over plans; None without repetition."""
    free = sum(len(rates) - 1 for rates in runs)
    logs = [[math.log(rate) for rate in rates] for rates in runs]
    return math.sqrt(sum((x - statistics.fmean(own)) ** 2 for own in logs for x in own) / free) if free else None


def tau_with_ties(
    first: Mapping[str, float], second: Mapping[str, float], runs: Mapping[str, int], spread: float
) -> float:
    """Kendall's tau-b in which two plans are equal where they differ by less than medians of their runs would by chance.

    Being equal is not transitive, so it is Daniels' general coefficient of signs that are 0 for such pairs.

    Args:
        runs: number of runs of each plan.
        spread: standard deviation of the logarithm of rates between runs of one plan.
    """

    def sign(values: Mapping[str, float], one: str, other: str) -> int:
        by_chance = REPEATABLE * spread * math.sqrt(1 / runs[one] + 1 / runs[other])
        difference = math.log(values[one] / values[other])
        return 0 if abs(difference) < by_chance else int(math.copysign(1, difference))

    pairs = [(sign(first, a, b), sign(second, a, b)) for a, b in itertools.combinations(runs, 2)]
    untied = sum(x != 0 for x, _ in pairs) * sum(y != 0 for _, y in pairs)
    return sum(x * y for x, y in pairs) / math.sqrt(untied) if untied else math.nan


def _median(found: Sequence[Measurement], policy: SharedPolicy) -> float:
    return statistics.median(one.rate for one in found if one.policy == policy)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shapes", default=",".join(SHAPES))
    parser.add_argument("--releases", default="2.3,1.20")
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--runs", type=int, default=5, help="of each policy")
    parser.add_argument("--workspace", type=Path, default=WORKSPACE, help="where measurements are stored")
    parser.add_argument("--table", action="store_true", help="simulate what was measured, and print tables")
    asked = parser.parse_args()
    workspace, console = Workspace(asked.workspace), Console(width=150)
    for line in asked.releases.split(","):
        for name in asked.shapes.split(","):
            shape, release = SHAPES[name], release_of(line)
            inputs = {"shape": digest(str(shape))}
            key = f"{release.line}/{name}/profile.json"
            case = Case(shape, release, workspace.once(key, inputs, Profiled, partial(profiled, shape, release)))
            wanted = [p for p in asked.policies.split(",") if p != "tasks" or release.line != "1.20"]
            found = [one for policy in wanted for one in case.measure(policy, asked.runs, workspace)]
            if asked.table:
                console.print(*tables(case, found), sep="\n")


if __name__ == "__main__":
    main()
