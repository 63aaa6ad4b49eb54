"""A simulator whose physics are not the twin's: what is measured on it with few slots, and its MST with many."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np

from models.capacity.bids2 import bids2
from models.capacity.observation import Observation
from models.cluster import Cluster, Worker
from models.dataflow import Partitioning
from models.job import Job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring import testbeds
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.progress import LineProgress
from pipelines.run import PipelineRun
from pipelines.stages.explore import explore
from pipelines.stages.profile import PROFILE_FILE, ProfileRecord, profile
from pipelines.store.workspace import Workspace
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator, streambed_cluster
from testbeds.simulator.run import SimulatedRun
from testbeds.simulator.settings import Physics

MEMORY_MB = 65536.0
MOVED = 0.3
RAMP_S, OBSERVE_S, SUSTAINED, PRECISION = 300.0, 600.0, 0.99, 0.01


@dataclass(frozen=True)
class Truth:
    """Physics that are not the twin's."""

    factors: Mapping[str, float]
    per_channel: float
    """Extra cost of a record for each doubling of the channels that its operator sends to, as a share of its cost."""

    @classmethod
    def drawn(cls, seed: int) -> "Truth":
        rng = np.random.default_rng(seed)
        names = (
            "cores",
            "io",
            "net",
            "slowdown",
            "buffer",
            "floating",
            "network",
            "cache",
            "latency",
            "blocks",
            "reserved",
            "flush",
        )
        factors = {name: float(rng.uniform(1 - MOVED, 1 + MOVED)) for name in names}
        return cls(factors, float(rng.uniform(0.0, MOVED / 10)))

    def physics(self, run_noise: bool) -> Physics:
        normal, by = Physics(), self.factors
        flink = normal.flink.model_copy(
            update={
                "buffer_bytes": round(normal.flink.buffer_bytes * by["buffer"]),
                "floating_buffers": round(normal.flink.floating_buffers * by["floating"]),
                "network_fraction": normal.flink.network_fraction * by["network"],
            }
        )
        state = normal.state.model_copy(
            update={
                "cached_bytes_per_live_byte": normal.state.cached_bytes_per_live_byte * by["cache"],
                "block_latency_s": normal.state.block_latency_s * by["latency"],
                "blocks_per_miss": normal.state.blocks_per_miss * by["blocks"],
                "reserved_mb": normal.state.reserved_mb * by["reserved"],
                "flush_s": normal.state.flush_s * by["flush"],
            }
        )
        noise = normal.noise if run_noise else normal.noise.model_copy(update={"run": 0.0})
        slowdown = normal.full_load_slowdown * by["slowdown"]
        return normal.model_copy(
            update={"flink": flink, "state": state, "full_load_slowdown": slowdown, "noise": noise}
        )

    def cluster(self, cluster: Cluster) -> Cluster:
        """The same, as it performs: its file says what it should."""
        return cluster.model_copy(update={"workers": tuple(self._worker(worker) for worker in cluster.workers)})

    def _worker(self, worker: Worker) -> Worker:
        moved = {name: getattr(worker, name) for name in ("cores", "io", "net")}
        return worker.model_copy(update={name: had and had * self.factors[name] for name, had in moved.items()})

    def job(self, job: Job, tasks: Mapping[str, int]) -> Job:
        """With the cost of its records in a deployment of so many tasks."""
        operators = []
        for o in job.operators:
            channels = sum(
                tasks[e.downstream] for e in job.downstream_edges(o.name) if e.partitioning is not Partitioning.FORWARD
            )
            factor = 1 + self.per_channel * math.log2(max(channels, 1))
            cost = o.cost.model_copy(update={"cpu_s": o.cost.cpu_s * factor})
            operators.append(o.model_copy(update={"cost": cost}))
        return job.model_copy(update={"operators": tuple(operators)})


class OtherSimulator(Simulator):
    """A simulator of the truth."""

    def __init__(self, truth: Truth, cluster: Cluster, run_noise: bool = True) -> None:
        super().__init__(truth.cluster(cluster), physics=truth.physics(run_noise))
        self._truth, self._stated = truth, cluster

    @property
    def cluster(self) -> Cluster:
        return self._stated

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> SimulatedRun:
        known = self._truth.job(job, configuration.parallelism)
        return super().deploy(known, configuration, run=run, seed=seed)


def opened(job: str, seed: int, folder: Path) -> PipelineRun:
    """The run that measures a job of the catalogue, or of a file, in a folder."""
    cluster = folder / "cluster.json"
    folder.mkdir(parents=True, exist_ok=True)
    cluster.write_text(streambed_cluster(64).model_dump_json(), encoding="utf-8")
    request = PlanRequest(job=job, exploration="streambed", rate=1e12, seed=seed, run="r", cluster=str(cluster))
    return PipelineRun(request, Workspace(str(folder)), LineProgress(print))


def measured(job: str, seed: int, truth: Truth, folder: Path) -> PipelineRun:
    """Profile and explore with at most 48 slots, as the pipeline does."""
    run = opened(job, seed, folder)
    with patch.object(testbeds, "Simulator", lambda cluster: OtherSimulator(truth, cluster)):
        profile(run)
        explore(run)
    return run


class Production:
    """The truth at a scale that the testbed does not have."""

    def __init__(self, run: PipelineRun, truth: Truth, slots: int) -> None:
        self._job, self._best = run.job, bids2(_largest(run).operators, slots)
        self._sources = run.output(PROFILE_FILE, ProfileRecord).source_rate_per_task
        self._testbed = OtherSimulator(truth, streambed_cluster(math.ceil(slots / 16)), run_noise=False)

    def sustains(self, rate: float, seed: int) -> bool:
        sources = {s.name: math.ceil(2 * rate * s.rate_share / self._sources[s.name]) for s in self._job.sources}
        asked = Configuration({**sources, **self._best.parallelism}, MEMORY_MB)
        with self._testbed.deploy(self._job, asked, run="large", seed=seed) as run:
            if run.inject(rate, RAMP_S, "ramp").achieved_rate < 0.8 * rate:
                return False
            return run.inject(rate, OBSERVE_S, "observe").achieved_rate >= SUSTAINED * rate

    def mst(self, guess: float, seed: int) -> float:
        """Highest sustained rate, to PRECISION."""
        low, high, step = guess, guess, 1.05
        if self.sustains(guess, seed):
            while self.sustains(high := high * step, seed):
                low, step = high, step * 1.1
        else:
            while not self.sustains(low := low / step, seed):
                high, step = low, step * 1.1
        while high / low > 1 + PRECISION:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.sustains(middle, seed) else (low, middle)
        return low


def _largest(run: PipelineRun) -> Observation:
    return max(run.output(EXPLORATION_FILE, ExplorationRecord).observations, key=lambda o: (o.task_slots, o.memory_mb))


def truths_of(run: PipelineRun, truth: Truth, seed: int, sizes: Sequence[int]) -> dict[int, float]:
    """The MST at each size; each is looked for from the MST per slot of the one before."""
    largest, found = _largest(run), dict[int, float]()
    per_slot = largest.mst / largest.task_slots
    for slots in sizes:
        found[slots] = Production(run, truth, slots).mst(per_slot * slots, seed)
        per_slot = found[slots] / slots
    return found
