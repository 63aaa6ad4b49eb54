"""What the arena says of the same jobs, traces and contenders: replays on the simulator, in the workload's time."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from scipy.stats import kendalltau

from benchmarks.autopilot.acting import FACTOR
from benchmarks.autopilot.acting.contenders import BURN_IN_S, BY_NAME, LEAST_BETWEEN_S, Contender
from benchmarks.autopilot.acting.jobs import KINDS, PEAK_REAL, JobKind
from benchmarks.autopilot.acting.scores import ActingScores
from benchmarks.autopilot.acting.traces import TRACES
from models.cluster import Cluster
from pipelines.arena.replays.cell import HOUR_S, ReplayOutcome
from pipelines.arena.replays.metrics import FlinkMetrics
from pipelines.arena.replays.outcome import outcome
from pipelines.arena.replays.replay import Start, replay
from testbeds.simulator import Simulator
from testbeds.simulator.settings import IN_PLACE, Physics

SEEDS: Final = (1, 2, 3)
SPLIT: Final = 10_000
"""Records of the simulator for each of the run. Its buffers are counted in bytes, and would hold an hour of so few records,
in which none is late; the program's hold a second or two."""
SLOTS: Final = 160
MEMORY_MB: Final = 4096.0
MANAGED_MB: Final = 64.0


@dataclass(frozen=True)
class Predicted:
    """Of one contender: medians over seeds."""

    mean_tasks: float
    p95_s: float
    """Of the workload's time."""
    rescales: float


def predicted(kind: JobKind, trace: str, contender: Contender, downtime_real_s: float) -> Predicted:
    """
    Args:
        downtime_real_s: of a rescale, as measured.
    """
    found = [_replayed(kind, trace, contender, downtime_real_s, seed) for seed in SEEDS]
    hours = (TRACES[trace](1.0).seconds - BURN_IN_S) / HOUR_S
    return Predicted(
        median(one.task_hours / hours for one in found),
        median(one.latency_p95_s or 0.0 for one in found),
        median(float(one.rescales) for one in found),
    )


def _replayed(kind: JobKind, trace: str, contender: Contender, downtime_real_s: float, seed: int) -> ReplayOutcome:
    workload = TRACES[trace](SPLIT * PEAK_REAL / FACTOR)
    job = kind.simulated(SPLIT)
    cluster = Cluster.model_validate({"name": "acting", "count": SLOTS, "slots": 1, "cores": 1, "memory_mb": MEMORY_MB})
    rescaling = IN_PLACE.model_copy(update={"restart_s": downtime_real_s * FACTOR})
    start = Start(
        parallelism=kind.tasks(workload.rates[0] * FACTOR / SPLIT),
        memory_mb=MEMORY_MB,
        managed_memory_mb={o.name: MANAGED_MB for o in job.operators},
        seed=seed,
    )
    trace_of = replay(
        Simulator(cluster, physics=Physics(rescaling=rescaling)),
        job,
        workload,
        contender.made(workload.peak_rate),
        start,
        least_between_s=LEAST_BETWEEN_S,
        metrics=FlinkMetrics(seed),
    )
    return outcome(trace_of, workload, BURN_IN_S)


@dataclass(frozen=True)
class BesideArena:
    """A run and what the arena says of it, by contender: measured and predicted."""

    sizes: Mapping[str, tuple[float, float]]
    """Mean tasks."""
    p95_s: Mapping[str, tuple[float, float]]
    """Of the workload's time."""
    rescales: Mapping[str, tuple[float, float]]

    @property
    def tau_sizes(self) -> float:
        return _tau(list(self.sizes.values()))

    @property
    def tau_p95(self) -> float:
        return _tau(list(self.p95_s.values()))

    def size_errors(self) -> dict[str, float]:
        """Predicted over measured, less 1."""
        return {name: after / before - 1 for name, (before, after) in self.sizes.items()}


def beside_arena(kind: str, trace: str, measured: Mapping[str, Sequence[ActingScores]]) -> BesideArena:
    """The arena's replays of a job and trace, with the downtime of a rescale that was measured.

    Args:
        measured: of each contender, one for each run.
    """
    downtime = [s.downtime_s / s.restarts for several in measured.values() for s in several if s.restarts]
    replays = {
        name: predicted(KINDS[kind], trace, BY_NAME[name], median(downtime) if downtime else 1.0) for name in measured
    }
    return BesideArena(
        {n: (median(s.mean_tasks for s in measured[n]), p.mean_tasks) for n, p in replays.items()},
        {n: (FACTOR * median(s.p95_s for s in measured[n]), p.p95_s) for n, p in replays.items()},
        {n: (median(float(s.rescales) for s in measured[n]), p.rescales) for n, p in replays.items()},
    )


def _tau(pairs: Sequence[tuple[float, float]]) -> float:
    found = float(kendalltau([a for a, _ in pairs], [b for _, b in pairs]).statistic)
    return 0.0 if math.isnan(found) else found
