"""What `sluice observe` and `sluice plan --from-running` say of Flink jobs that read Kafka, beside what the jobs then do.

    python benchmarks/running_jobs.py [--kinds even,slow-operator,...] [--seconds 60]

Starts a Kafka broker, a feeder, and a Flink of two TaskManagers with four slots each. The program (`kafka_job/`) knows
nothing of Sluice; its steps wait instead of computing, so that little depends on the speed of the machine. For each kind:

1. The job is fed with 0.6 of what its slow step takes by its own costs, and observed: what would bind it, and its MST
   computed from busyness.
2. It is fed with 1.5 times what it takes, and observed: what binds it, and the MST that is seen while records wait.
3. With `--plan`, it is planned from running for twice the rate of 1, the plan is applied to the running job, the rate is
   doubled, and the lag is watched; then the same with one task less of the tightest vertex.
"""

import argparse
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from flink_client.rest import FlinkRest, JarProgram
from models.capacity.observed.record import ObservedJob
from models.plan import Plan
from pipelines.observe.observation import Observed, observe_job
from pipelines.observe.planning import RunningRequest, plan_running
from pipelines.progress import Quiet
from pipelines.store.workspace import Workspace
from testbeds.flink.local.distribution import flink_home
from testbeds.flink.local.processes import LocalCluster
from testbeds.flink.local.profile import Profile, TaskManager
from testbeds.kafka.broker import LocalBroker
from testbeds.kafka.feeding import GeneratedFeed, KafkaFeeder
from testbeds.kafka.topics import Topics
from testbeds.local.javac import compile_java
from testbeds.local.jdk import find_jdk
from testbeds.local.maven import jars

HERE: Final = Path(__file__).parent / "kafka_job"
PARK_US: Final = 70.0
"""What waiting takes beyond the time asked for, about."""
SETTLE_S: Final = 40.0
START_S: Final = 180.0
KEYS: Final = 1000


@dataclass(frozen=True)
class Kind:
    """A job that is slow on purpose, and what binds it."""

    name: str
    vertex: str
    """Part of the name of the vertex that binds."""
    cause: str
    parse_us: int = 200
    count_us: int = 200
    store_us: int = 200
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
    Kind("even", "count", "CPU", count_us=1000),
    Kind("slow-operator", "parse", "CPU", parse_us=1500),
    Kind("hot-key", "count", "hot key", count_us=800, hot=0.6),
    Kind("slow-sink", "store", "CPU", store_us=1500),
    Kind("few-partitions", "parse", "source partitions", parse_us=800, chained=True, partitions=1),
)


@dataclass(frozen=True)
class Lab:
    """What is started once."""

    rest: FlinkRest
    broker: LocalBroker
    topics: Topics
    jar: str
    workspace: Workspace


@contextmanager
def lab() -> Iterator[Lab]:
    """A broker and a Flink."""
    with tempfile.TemporaryDirectory() as folder, LocalBroker() as broker, LocalCluster() as cluster:
        broker.start()
        settings = {"taskmanager.network.memory.buffer-debloat.enabled": "false"}
        cluster.ensure(Profile(tuple(TaskManager(f"tm{i}", 4, 1024.0) for i in (1, 2)), settings))
        with Topics(broker.connection) as topics:
            jar = cluster.rest.upload(_built(Path(folder)))
            yield Lab(cluster.rest, broker, topics, jar, Workspace(Path(folder) / "workspace"))


def _built(folder: Path) -> Path:
    """The program's jar with what it needs beside Flink, as users build theirs."""
    needed, classes = jars(HERE / "kafka-job.pom.xml", "this benchmark"), folder / "classes"
    home = flink_home(lambda what, share: None)
    compile_java(sorted((HERE / "java").glob("*.java")), classes, f"{home / 'lib'}/*:{needed}/*", find_jdk())
    made = folder / "kafka-job.jar"
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:
        seen: set[str] = set()
        for path in sorted(classes.rglob("*.class")):
            out.write(path, str(path.relative_to(classes)))
        for path in sorted(needed.glob("*.jar")):
            with zipfile.ZipFile(path) as jar:
                for name in jar.namelist():
                    if name not in seen and not name.startswith("META-INF/MANIFEST"):
                        seen.add(name)
                        out.writestr(name, jar.read(name))
    return made


@contextmanager
def running(lab: Lab, kind: Kind) -> Iterator[tuple[str, KafkaFeeder]]:
    """The job, and what feeds it."""
    topic = f"{kind.name}-events"
    lab.topics.create(topic, kind.partitions)
    arguments = [lab.broker.connection.bootstrap, topic, kind.name, kind.parse_us, kind.count_us, kind.store_us]
    program = JarProgram(
        "KafkaJob",
        tuple(map(str, [*arguments, kind.hot, str(kind.chained).lower()])),
        {"parallelism.default": str(kind.tasks), "execution.checkpointing.interval": "10 s"},
    )
    with KafkaFeeder(lab.broker.connection, [GeneratedFeed(topic, keys=KEYS)]) as feeder:
        job = lab.rest.run(lab.jar, program)
        try:
            lab.rest.wait_until_running(job, START_S)
            yield job, feeder
        finally:
            lab.rest.cancel(job)


def seen_at(lab: Lab, kind: Kind, job: str, feeder: KafkaFeeder, rate: float, seconds: float) -> Observed:
    """What is observed at a rate, once it has settled."""
    feeder.offer({f"{kind.name}-events": rate})
    time.sleep(SETTLE_S)
    return observe_job(lab.rest, job, seconds, lab.workspace, Quiet(), lab.broker.connection.bootstrap)


def measured(lab: Lab, kind: Kind, seconds: float, plan: bool) -> list[str]:
    """A row of the table."""
    with running(lab, kind) as (job, feeder):
        rate = 0.6 * kind.takes
        below = seen_at(lab, kind, job, feeder, rate, seconds)
        planned = _planned(lab, kind, job, feeder, below, rate, seconds) if plan else ""
        if plan:
            return [kind.name, f"{rate:,.0f}", planned]
        assert below.job.capacity is not None
        computed = below.job.capacity.mst
        over = 1.5 * max(computed.value, kind.takes)
        above = seen_at(lab, kind, job, feeder, over, seconds).job
    found = above.capacity
    said = "-" if found is None or not found.seen else f"{found.mst.value:,.0f}"
    off = "-" if found is None else f"{computed.value / found.mst.value - 1:+.0%}"
    arriving = f"{(below.job.arriving_rate or 0) / rate - 1:+.1%}, {(above.arriving_rate or 0) / over - 1:+.1%}"
    return [
        kind.name,
        f"{rate:,.0f}",
        arriving,
        f"{computed.value:,.0f}",
        said,
        off,
        _named(kind, below.job),
        _named(kind, above),
    ]


def _named(kind: Kind, observed: ObservedJob) -> str:
    bound = observed.bound_by
    right = bound.cause == kind.cause and kind.vertex in (bound.vertex or "")
    return f"{'right' if right else 'WRONG'}: {bound.vertex}, {bound.cause}"


def _planned(lab: Lab, kind: Kind, job: str, feeder: KafkaFeeder, below: Observed, rate: float, seconds: float) -> str:
    """Whether the plan for twice the rate keeps the lag flat, and whether one task less of its tightest vertex would."""
    plan = plan_running(lab.rest, below, RunningRequest(2 * rate), lab.workspace, Quiet())
    tightest = next(o for o in plan.operators if kind.vertex in o.name)
    outcome = []
    for fewer in (0, 1):
        tasks = _tasks(plan, below, tightest.name, fewer)
        lab.rest.require(job, tasks)
        lab.rest.wait_until_running(job, START_S, tasks)
        feeder.offer({f"{kind.name}-events": rate})
        time.sleep(SETTLE_S)
        seen = seen_at(lab, kind, job, feeder, 2 * rate, seconds).job
        grows = seen.lag_growth or 0.0
        flat = grows < 0.01 * 2 * rate
        outcome.append(f"{tightest.parallelism - fewer} tasks: {'flat' if flat else f'grows by {grows:,.0f}/s'}")
    return "; ".join(outcome)


def _tasks(plan: Plan, below: Observed, tightest: str, fewer: int) -> dict[str, int]:
    """Tasks by vertex id."""
    ids = {name: id_ for id_, name in below.operators.items()}
    return {ids[o.name]: max(1, o.parallelism - (fewer if o.name == tightest else 0)) for o in plan.operators}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kinds", default=",".join(kind.name for kind in KINDS))
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each observation takes")
    parser.add_argument("--plan", action="store_true", help="plan for twice the rate, and apply it")
    options = parser.parse_args(arguments)
    columns = (
        ("kind", "fed", "after the plan")
        if options.plan
        else (
            "kind",
            "fed",
            "arriving",
            "MST computed",
            "MST seen",
            "off",
            "would bind",
            "binds",
        )
    )
    table = Table(*columns)
    with lab() as started:
        for name in options.kinds.split(","):
            kind = next(k for k in KINDS if k.name == name)
            row = measured(started, kind, options.seconds, options.plan)
            Console(stderr=True).print(*row, sep=" | ")
            table.add_row(*row)
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
