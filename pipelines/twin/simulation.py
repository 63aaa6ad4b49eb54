"""The MST that the simulator predicts for a configuration of a twin.

Sizes that were measured, and those between them, are simulated as sizes are measured: the same search with the same windows,
so that what short windows hide is hidden from both. Larger ones are simulated as production runs: at each rate the job is newly
deployed, settles, and is observed for minutes.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from models.capacity.mst import MstSettings
from models.cluster import Cluster, Worker
from models.job import Job
from pipelines.measuring.estimate import search_mst
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator
from testbeds.simulator.settings import Noise, Physics

SETTLE_S: Final = 60.0
OBSERVE_S: Final = 120.0
SUSTAINED: Final = 0.99
PRECISION: Final = 0.03
"""Relative distance of a sustained rate and one that is not."""
FIRST_STEP: Final = 0.1
SOURCE_MARGIN: Final = 1.5
MOST_STEPS: Final = 24
MOST_WAITS_BUFFERED_S: Final = 1.0
"""Much less than OBSERVE_S, and many records still."""
SEED: Final = 0


def machine_of_twin(machine: Physics) -> Physics:
    """Tasks keep their noise, which keeps their windows from firing all at once; that of whole runs is not predicted.

    Buffers hold few of the records that wait outside the job: those in buffers count as taken, and as many as fit are enough
    for any rate to seem sustained for minutes.
    """
    noise = Noise(run=0.0, task=machine.noise.task, task_correlation_s=machine.noise.task_correlation_s)
    flink = machine.flink.model_copy(update={"most_waits_buffered_s": MOST_WAITS_BUFFERED_S})
    return machine.model_copy(update={"noise": noise, "flink": flink, "cold_slowdown": 0.0})


@dataclass(frozen=True)
class Twin:
    """What the simulator needs."""

    job: Job
    worker: Worker
    """One of the equal workers of any cluster."""
    machine: Physics
    source_rate_per_task: Mapping[str, float]
    production_workers: int = 1
    """At least so many run the job in production."""

    def cluster(self, task_slots: int) -> Cluster:
        """As many workers as so many slots need."""
        count = math.ceil(task_slots / self.worker.slots)
        kind = self.worker.model_dump()
        return Cluster(name="twin", workers=tuple(Worker(**{**kind, "name": f"tm-{i + 1}"}) for i in range(count)))

    def source_tasks(self, rate: float) -> dict[str, int]:
        """Tasks of each source that emit its share of `rate` records/s and SOURCE_MARGIN times that."""
        return {
            s.name: math.ceil(SOURCE_MARGIN * rate * s.rate_share / self.source_rate_per_task[s.name])
            for s in self.job.sources
        }


def measured_like(twin: Twin, tasks: Mapping[str, int], memory_mb: float, workers: int, settings: MstSettings) -> float:
    """MST by the search of the measurements; 0 if no rate is sustained.

    Args:
        tasks: of each operator, sources included.
        workers: of the testbed.
    """
    testbed = Simulator(twin.cluster(workers * twin.worker.slots), (memory_mb,), twin.machine)
    with testbed.deploy(twin.job, Configuration(dict(tasks), memory_mb), run="twin", seed=SEED) as run:
        search, _ = search_mst(run, settings)
    return search.mst or 0.0


def in_production(twin: Twin, tasks: Mapping[str, int], memory_mb: float, guess: float) -> float:
    """Highest rate that is sustained for minutes, to half of PRECISION, from a guess; 0 if none is.

    Args:
        tasks: of each operator but the sources.
    """
    slots = max(sum(tasks.values()), twin.production_workers * twin.worker.slots)
    testbed = Simulator(twin.cluster(slots), (memory_mb,), twin.machine)

    def sustains(rate: float) -> bool:
        wanted = Configuration({**twin.source_tasks(rate), **tasks}, memory_mb)
        with testbed.deploy(twin.job, wanted, run="twin", seed=SEED) as run:
            if run.inject(rate, SETTLE_S, "ramp").achieved_rate < 0.8 * rate:
                return False
            return run.inject(rate, OBSERVE_S, "observe").achieved_rate >= SUSTAINED * rate

    low, high = _bracket(guess, sustains)
    while low > 0 and high / low > 1 + PRECISION:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if sustains(middle) else (low, middle)
    return math.sqrt(low * high)


def _bracket(guess: float, sustains: Callable[[float], bool]) -> tuple[float, float]:
    """A sustained rate and one that is not, by steps that double."""
    step = FIRST_STEP
    if sustains(guess):
        low, high = guess, guess * (1 + step)
        for _ in range(MOST_STEPS):
            if not sustains(high):
                break
            step *= 2
            low, high = high, high * (1 + step)
        return low, high
    high, low = guess, guess / (1 + step)
    for _ in range(MOST_STEPS):
        if sustains(low):
            return low, high
        step *= 2
        high, low = low, low / (1 + step)
    return 0.0, high
