"""The jobs that are scaled: one program (`running/kafka_job/`) with two sets of costs. Their steps wait, as for a service that
they call, so that jobs do not disturb one another and many run on a machine of few cores."""

import math
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from benchmarks.autopilot.acting import FACTOR
from flink_client.rest.jars import JarProgram
from models.dataflow import Edge, Partitioning
from models.job import Cost, Job, Kind, Operator

PARK_US: Final = 70.0
"""What waiting takes beyond the time asked for, about."""
IDLE_S: Final = 20e-6
"""What a record costs a step that does nothing with it, about."""
UTILIZATION: Final = 0.6
"""Busy share that the tasks at the start have."""
PEAK_REAL: Final = 150.0
"""Records/s of real time at the peak of all workloads."""
PARTITIONS: Final = 24
KEY_GROUPS: Final = 120
STATED: Final = "stated: what each step waits for a record, in the workload's time"
CHECKPOINT_REAL_S: Final = 1.0
"""Lag is read from offsets, which Flink commits with a checkpoint."""


@dataclass(frozen=True)
class JobKind:
    """What a record costs each step, microseconds of real time."""

    name: str
    parse_us: int
    count_us: int
    store_us: int
    chained: bool
    """Whether parsing is chained to the source."""

    @property
    def steps(self) -> dict[str, float]:
        """Seconds of real time by vertex, in the order of the dataflow."""
        parse, count, store = ((us + PARK_US) / 1e6 for us in (self.parse_us, self.count_us, self.store_us))
        first = {"source": parse} if self.chained else {"source": IDLE_S, "parse": parse}
        return {**first, "count": count, "store": store, "nowhere": IDLE_S}

    def tasks(self, rate_real: float) -> dict[str, int]:
        """Of each vertex, so that it is busy for `UTILIZATION` at a rate of real time."""
        return {name: max(1, math.ceil(rate_real * s / UTILIZATION)) for name, s in self.steps.items()}

    def program(self, bootstrap: str, topic: str, group: str) -> JarProgram:
        arguments = [bootstrap, topic, group, self.parse_us, self.count_us, self.store_us, 0.0]
        return JarProgram(
            "KafkaJob",
            (*map(str, arguments), str(self.chained).lower()),
            {
                "parallelism.default": "1",
                "pipeline.max-parallelism": str(KEY_GROUPS),
                "execution.checkpointing.interval": f"{CHECKPOINT_REAL_S * 1000:.0f} ms",
            },
        )

    def simulated(self, split: int) -> Job:
        """It in the workload's time, for the arena.

        Args:
            split: records for each of the program's, each as much cheaper.
        """
        names = list(self.steps)
        kinds = {"source": Kind.SOURCE, "nowhere": Kind.SINK}
        operators = [
            Operator(
                name=name,
                kind=kinds.get(name, Kind.OPERATOR),
                cost=Cost(cpu_s=s * FACTOR / split),
                selectivity=0.0 if name == "nowhere" else 1.0,
                figures_from=STATED,
            )
            for name, s in self.steps.items()
        ]
        edges = [
            Edge(upstream=a, downstream=b, partitioning=Partitioning.HASH if b == "count" else Partitioning.REBALANCE)
            for a, b in pairwise(names)
        ]
        return Job(
            name=f"acting-{self.name}",
            description="The program of the benchmark, as the arena replays it.",
            figures_from=STATED,
            operators=tuple(operators),
            edges=tuple(edges),
            key_groups=KEY_GROUPS,
        )


KINDS: Final = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            JobKind("keyed", parse_us=10_000, count_us=32_000, store_us=8000, chained=False),
            JobKind("chained", parse_us=32_000, count_us=10_000, store_us=8000, chained=True),
        )
    }
)
