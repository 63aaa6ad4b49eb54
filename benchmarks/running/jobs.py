"""What `sluice observe` and `sluice plan --from-running` say of Flink jobs that read Kafka, beside what the jobs then do.

    python -m benchmarks.running.jobs [--flink-version 2.3] [--kinds even,slow-operator,...] [--plan KINDS] [--steps 1234]

Starts a Kafka broker, a feeder for each job, and a Flink of two TaskManagers. The program (`kafka_job/`) knows nothing of
Sluice; its steps wait instead of computing, so that little depends on the speed of the machine, and all jobs run at the
same time. For each of `--kinds`, by `--steps`:

1. The job is fed with 0.6 of what its slow step takes by its own costs, and observed: what would bind it, and its MST
   computed from busyness.
2. It is fed with 1.2 times what it takes, and observed: whether the lag grows, what binds it, and the MST that is seen
   while records wait.
3. It is fed with 0.9 of the MST that was seen: whether the lag stays flat.
4. It is fed with 0.6 of that, and a TaskManager is killed while it is observed: the MST that is seen while
   it catches up. The other TaskManager has slots for all jobs.

For each of `--plan`, another job of the kind is planned from running at 0.6 for twice that rate, the plan is applied, the
rate is doubled, and the lag is watched; then the same with one task less of the tightest vertex, until it grows.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.running.user_jar import user_jar
from flink_client.rest import FlinkRest, JarProgram
from models.capacity.observed.record import ObservedCapacity, ObservedJob
from models.plan import Interval, Plan
from pipelines.observe.observation import Observed, observe_job
from pipelines.observe.planning import RunningRequest, plan_running
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import RELEASES, Release, flink_home
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.distribution import connector_jars
from testbeds.kafka.feeding.feeder import GeneratedFeed, KafkaFeeder
from testbeds.kafka.topics import Topics
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk
from testbeds.local.maven import jars

HERE: Final = Path(__file__).parent / "kafka_job"
PARK_US: Final = 70.0
"""What waiting takes beyond the time asked for, about."""
SETTLE_S: Final = 25.0
START_S: Final = 180.0
KEYS: Final = 1000
BELOW: Final = 0.6
ABOVE: Final = 1.2
HELD: Final = 0.9
HOLD_S: Final = 300.0
"""How long a lag must stay flat."""
CATCH_UP_S: Final = 150.0
KILLED_AFTER_S: Final = 30.0
OUTAGE: Final = "25 s"
BARRIER_S: Final = 600.0
FLAT: Final = 0.01
"""Share of the rate by which a lag may grow and be flat."""
SLOTS: Final = 32
"""Of each TaskManager: all jobs fit into one."""


@dataclass(frozen=True)
class Kind:
    """A job that is slow on purpose, and what binds it."""

    name: str
    vertex: str
    """Part of the name of the vertex that binds."""
    cause: str
    parse_us: int = 600
    count_us: int = 600
    store_us: int = 600
    hot: float = 0.0
    """Share of the records that get one key."""
    chained: bool = False
    """Whether parsing is chained to the source."""
    partitions: int = 8
    tasks: int = 2

    @property
    def takes(self) -> float:
        """Records/s that the slow step takes, by the costs alone."""
        each = {"parse": self.parse_us, "count": self.count_us, "store": self.store_us}
        steps = {name: self.tasks * 1e6 / (us + PARK_US) for name, us in each.items()}
        steps["count"] /= self.tasks * (self.hot + (1 - self.hot) / self.tasks)
        if self.chained:
            steps["parse"] *= min(self.partitions, self.tasks) / self.tasks
        return min(steps.values())


KINDS: Final = (
    Kind("even", "count", "CPU", count_us=3000),
    Kind("slow-operator", "parse", "CPU", parse_us=4500),
    Kind("hot-key", "count", "hot key", count_us=2400, hot=0.6),
    Kind("slow-sink", "store", "CPU", store_us=4500),
    Kind("few-partitions", "parse", "source partitions", parse_us=2400, chained=True, partitions=1),
)


@dataclass(frozen=True)
class Lab:
    """What is started once."""

    cluster: LocalCluster
    broker: LocalBroker
    topics: Topics
    jar: str
    workspace: Workspace
    restarting: threading.Barrier
    """All jobs are observed when the TaskManager is killed."""

    @property
    def rest(self) -> FlinkRest:
        return self.cluster.rest


@contextmanager
def lab(release: Release, restarting: int, kill_idle: bool = False) -> Iterator[Lab]:
    """A broker and a Flink.

    Args:
        restarting: how many jobs are observed when a TaskManager is killed.
        kill_idle: whether that is the one with the fewest tasks.
    """
    with tempfile.TemporaryDirectory() as folder, LocalBroker() as broker, LocalCluster(release=release) as cluster:
        broker.start()
        settings = {
            "taskmanager.network.memory.buffer-debloat.enabled": "false",
            "taskmanager.memory.segment-size": "16kb",
            "state.backend.type": "hashmap",
            # As Flink's defaults, where the testbed has others.
            "metrics.fetcher.update-interval": "10000",
            "web.refresh-interval": "3000",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "10",
            "restart-strategy.fixed-delay.delay": OUTAGE,
        }
        cluster.ensure(Profile(tuple(TaskManager(f"tm{i}", SLOTS, 1400.0) for i in (1, 2)), settings))
        barrier = threading.Barrier(max(restarting, 1), action=lambda: _kill_soon(cluster, kill_idle))
        with Topics(broker.connection) as topics:
            jar = cluster.rest.upload(program_jar(Path(folder), release))
            yield Lab(cluster, broker, topics, jar, Workspace(Path(folder) / "workspace"), barrier)


def _kill_soon(cluster: LocalCluster, idle: bool) -> None:
    """The TaskManager with the most tasks, or that with the fewest."""
    fullest, *_, emptiest = sorted(cluster.rest.task_managers(), key=lambda one: one.free_slots)
    threading.Timer(KILLED_AFTER_S, cluster.kill, [(emptiest if idle else fullest).id]).start()


def program_jar(folder: Path, release: Release) -> Path:
    """The program's jar with what it needs beside Flink, as users build theirs."""
    of_line = {"1.20": lambda: jars(HERE / "kafka-job.pom.xml", "this benchmark")}
    needed, classes = of_line.get(release.line, lambda: connector_jars(release.version))(), folder / "classes"
    home = flink_home(release=release)
    compile_java(sorted((HERE / "java").glob("*.java")), classes, f"{home / 'lib'}/*:{needed}/*", find_jdk())
    return user_jar([classes, *sorted(needed.glob("*.jar"))], folder / "kafka-job.jar")


@contextmanager
def running(lab: Lab, kind: Kind, name: str) -> Iterator["Fed"]:
    """The job, and what feeds it."""
    topic = f"{name}-events"
    lab.topics.create(topic, kind.partitions)
    arguments = [lab.broker.connection.bootstrap, topic, name, kind.parse_us, kind.count_us, kind.store_us]
    program = JarProgram(
        "KafkaJob",
        tuple(map(str, [*arguments, kind.hot, str(kind.chained).lower()])),
        {"parallelism.default": str(kind.tasks), "execution.checkpointing.interval": "10 s"},
    )
    with KafkaFeeder(lab.broker.connection, [GeneratedFeed(topic, keys=KEYS)]) as feeder:
        job = lab.rest.run(lab.jar, program)
        try:
            lab.rest.wait_until_running(job, START_S)
            yield Fed(lab, kind, job, topic, feeder)
        finally:
            lab.rest.cancel(job)


@dataclass(frozen=True)
class Fed:
    """A running job whose topic is fed."""

    lab: Lab
    kind: Kind
    job: str
    topic: str
    feeder: KafkaFeeder

    def offer(self, rate: float) -> None:
        self.feeder.offer({self.topic: rate})

    def seen_at(self, rate: float, seconds: float, settle_s: float = SETTLE_S) -> Observed:
        """What is observed at a rate, once it has settled."""
        self.offer(rate)
        time.sleep(settle_s)
        return self.observed(seconds)

    def observed(self, seconds: float) -> Observed:
        return observe_job(
            self.lab.rest, self.job, seconds, self.lab.workspace, Quiet(), self.lab.broker.connection.bootstrap
        )

    def drained(self) -> None:
        """Feed nothing until nothing is read any more."""
        self.offer(0.0)
        before = -1.0
        while (now := self._read()) != before:
            before = now
            time.sleep(SETTLE_S / 2)

    def _read(self) -> float:
        """Records that the tasks after the source have taken."""
        vertices = self.lab.rest.get(f"/jobs/{self.job}")["vertices"]
        return float(sum(v["metrics"]["read-records"] for v in vertices))


@dataclass
class Row:
    """What is stated of one job."""

    cells: dict[str, str] = field(default_factory=dict)
    computed: Interval | None = None
    """MST by busyness."""
    mst: float | None = None
    """That was seen."""

    def say(self, name: str, **cells: str) -> None:
        self.cells |= cells
        text = ", ".join(f"{column.replace('_', ' ')}: {cell}" for column, cell in cells.items())
        Console(stderr=True, width=200).print(f"{time.strftime('%H:%M:%S')} {name}: {text}")


def measured(lab: Lab, kind: Kind, seconds: float, steps: str) -> Row:
    """The steps, in the order in which they are named; what waits is read before each."""
    row = Row()
    with running(lab, kind, kind.name) as fed:
        for number, step in enumerate(steps):
            if number > 0:
                fed.drained()
            {"1": _below, "2": _above, "3": _hold, "4": _restart}[step](fed, row, seconds)
        if row.computed is not None and row.mst is not None:
            row.say(kind.name, off=f"{row.computed.value / row.mst - 1:+.0%}")
    return row


def _below(fed: Fed, row: Row, seconds: float) -> None:
    """Step 1."""
    kind, rate = fed.kind, BELOW * fed.kind.takes
    below = fed.seen_at(rate, seconds).job
    row.computed = computed = _computed(below)
    row.say(
        kind.name,
        fed=f"{rate:,.0f}",
        arriving=_off(below.arriving_rate, rate),
        computed=_text(computed),
        would_bind=_named(kind, below),
    )


def _above(fed: Fed, row: Row, seconds: float) -> None:
    """Step 2."""
    kind, computed = fed.kind, row.computed
    over = ABOVE * max(kind.takes, 0.0 if computed is None else computed.value)
    # Buffers hold minutes of what is too much by a fifth.
    fed.offer(2 * over)
    time.sleep(SETTLE_S)
    above = fed.seen_at(over, seconds).job
    row.mst = mst = above.capacity.mst.value if above.capacity is not None and above.capacity.seen else None
    row.say(
        kind.name,
        arriving_above=_off(above.arriving_rate, over),
        at_120=_lag(above, over),
        MST="none seen" if mst is None else f"{mst:,.0f}",
        binds=_named(kind, above),
    )


def _hold(fed: Fed, row: Row, seconds: float) -> None:
    """Step 3."""
    rate = HELD * (row.mst or fed.kind.takes)
    held = fed.seen_at(rate, HOLD_S).job
    row.say(fed.kind.name, at_90=_lag(held, rate), computed_at_90=_text(_computed(held)))


def _restart(fed: Fed, row: Row, seconds: float) -> None:
    """Step 4."""
    mst = row.mst or fed.kind.takes
    fed.offer(BELOW * mst)
    time.sleep(SETTLE_S)
    fed.lab.restarting.wait(BARRIER_S)
    row.say(fed.kind.name, after_restart=_caught_up(fed.observed(CATCH_UP_S).job, mst))


def _text(computed: Interval | None) -> str:
    return "-" if computed is None else f"{computed.value:,.0f} ({computed.low:,.0f} to {computed.high:,.0f})"


def _computed(observed: ObservedJob) -> Interval | None:
    capacity: ObservedCapacity | None = observed.capacity
    return None if capacity is None or capacity.seen else capacity.mst


def _off(value: float | None, truth: float) -> str:
    return "-" if value is None else f"{value / truth - 1:+.1%}"


def _lag(observed: ObservedJob, rate: float) -> str:
    grows = observed.lag_growth or 0.0
    return "flat" if grows < FLAT * rate else f"grows by {grows:,.0f}/s"


def _caught_up(observed: ObservedJob, mst: float) -> str:
    found = observed.capacity
    if found is None or not found.seen:
        return f"none seen ({observed.restarts} restarts)"
    return f"{found.mst.value:,.0f} ({found.mst.value / mst - 1:+.0%}, {observed.restarts} restarts)"


def _named(kind: Kind, observed: ObservedJob) -> str:
    bound = observed.bound_by
    right = bound.cause == kind.cause and kind.vertex in (bound.vertex or "")
    return f"{'right' if right else 'WRONG'}: {bound.vertex}, {bound.cause}"


def planned(lab: Lab, kind: Kind, seconds: float) -> Row:
    """Whether the plan for twice the rate keeps the lag flat, and the fewest tasks of its tightest vertex that do."""
    row, name = Row(), f"{kind.name}-planned"
    with running(lab, kind, name) as fed:
        rate = BELOW * kind.takes
        below = fed.seen_at(rate, seconds)
        plan = plan_running(lab.rest, below, RunningRequest(2 * rate), lab.workspace, Quiet())
        tightest = next(o for o in plan.operators if kind.vertex in o.name)
        row.say(name, fed=f"{rate:,.0f}", planned=", ".join(f"{o.name} {o.parallelism}" for o in plan.operators))
        for tasks in range(tightest.parallelism, 0, -1):
            by_id = _tasks(plan, below, tightest.name, tasks)
            fed.drained()
            lab.rest.require(fed.job, by_id)
            lab.rest.wait_until_running(fed.job, START_S, by_id)
            seen = fed.seen_at(2 * rate, HOLD_S if tasks == tightest.parallelism else seconds).job
            row.say(name, **{f"with_{tasks}": _lag(seen, 2 * rate)})
            if _lag(seen, 2 * rate) != "flat":
                break
    return row


def _tasks(plan: Plan, below: Observed, tightest: str, tasks: int) -> dict[str, int]:
    """Tasks by vertex id."""
    ids = {name: id_ for id_, name in below.operators.items()}
    return {ids[o.name]: tasks if o.name == tightest else o.parallelism for o in plan.operators}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--flink-version", choices=tuple(RELEASES), default="1.20")
    parser.add_argument("--kinds", default=",".join(kind.name for kind in KINDS))
    parser.add_argument("--seconds", type=float, default=45.0, help="how long each observation takes")
    parser.add_argument("--plan", default="", help="kinds to plan for twice the rate")
    parser.add_argument("--steps", default="12", help="those of each job, and their order")
    parser.add_argument("--kill", choices=("fullest", "emptiest"), default="fullest", help="TaskManager of step 4")
    options = parser.parse_args(arguments)
    of = {kind.name: kind for kind in KINDS}
    kinds = [of[name] for name in options.kinds.split(",") if name]
    restarting = len(kinds) if "4" in options.steps else 0
    with (
        lab(RELEASES[options.flink_version], restarting, options.kill == "emptiest") as started,
        ThreadPoolExecutor(2 * len(KINDS)) as pool,
    ):
        rows = {kind.name: pool.submit(measured, started, kind, options.seconds, options.steps) for kind in kinds}
        rows |= {
            f"{name}, planned": pool.submit(planned, started, of[name], options.seconds)
            for name in options.plan.split(",")
            if name
        }
        for name, row in rows.items():
            table = Table("", name)
            for column, cell in row.result().cells.items():
                table.add_row(column.replace("_", " "), cell)
            Console(width=160).print(table)


if __name__ == "__main__":
    main()
