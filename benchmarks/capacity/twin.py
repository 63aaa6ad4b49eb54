"""How well capacity models with and without a twin predict a simulator whose physics are not the twin's.

    python -m benchmarks.capacity.twin [--jobs nexmark-q1,...] [--slots 200,500,1000] [--seed 301] [--seeds 1] [--keep FOLDER]

For each job and seed the physics of the truth are drawn: contention, buffers, cache and the cost of a record against
load each differ from the twin's by up to 30 %, and a mechanism is added that the twin does not have (a record costs more
the more channels its operator sends to). On that simulator the job is profiled and explored with at most 48 slots, as
`sluice plan` does. The twin is made of the samples. Then the MST is measured there at 200, 500 and 1,000 slots of 4 GB as
StreamBed does in production (`extrapolation.py`), on machines of average speed, and compared with both models.
"""

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from models.capacity.bids2 import bids2
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.twin import TWIN
from models.capacity.observation import Observation
from models.capacity.selection import select
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
from pipelines.stages.twin import TWIN_FILE, TwinRecord, twin
from pipelines.store.workspace import Workspace
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator, streambed_cluster
from testbeds.simulator.run import SimulatedRun
from testbeds.simulator.settings import Physics

MEMORY_MB = 65536.0
MOVED = 0.3
RAMP_S, OBSERVE_S, SUSTAINED, PRECISION = 300.0, 600.0, 0.99, 0.01
JOBS = "nexmark-q1,nexmark-q2,nexmark-q3,nexmark-q5,nexmark-q8,nexmark-q11"


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


@dataclass(frozen=True)
class Point:
    """The truth at one size, and what each model says of it."""

    job: str
    seed: int
    slots: int
    truth: float
    medians: Mapping[str, float]
    bands: Mapping[str, tuple[float, float]]
    weight: float
    """Of the twin."""


def points_of(run: PipelineRun, seed: int, truths: Mapping[int, float]) -> list[Point]:
    """Both models against the truth."""
    twin(run, also=sorted(truths))
    data = Dataset.of(run.output(EXPLORATION_FILE, ExplorationRecord).observations)
    curve = run.output(TWIN_FILE, TwinRecord).curve
    models = {"laws": select(data).model, "twin": select(data, twin=curve).model}
    points = []
    for slots, mst in truths.items():
        said = {name: model.interval(MEMORY_MB, slots) for name, model in models.items()}
        points.append(
            Point(
                job=run.job.name,
                seed=seed,
                slots=slots,
                truth=mst,
                medians={name: one.value for name, one in said.items()},
                bands={name: (one.low, one.high) for name, one in said.items()},
                weight=models["twin"].weights.get(TWIN, 0.0),
            )
        )
    return points


def summary(points: Sequence[Point], name: str) -> tuple[str, ...]:
    """Share in the band, median absolute error, share within 15 %, largest error, median width of the band."""
    errors = [abs(p.medians[name] / p.truth - 1) for p in points]
    covered = sum(p.bands[name][0] <= p.truth <= p.bands[name][1] for p in points)
    width = statistics.median(p.bands[name][1] / max(p.bands[name][0], 1e-9) for p in points)
    n = len(points)
    return (
        f"{covered} of {n} ({covered / n:.0%})",
        f"{statistics.median(errors):.1%}",
        f"{sum(e <= 0.15 for e in errors)} of {n}",
        f"{max(errors):.0%}",
        f"{width:.1f}",
    )


def report(console: Console, points: Sequence[Point]) -> None:
    """A row for each point, then the sums by job."""
    each = Table("job", "seed", "slots", "MST", "laws", "with twin", "95 % band", "covers", "weight of twin")
    for p in points:
        low, high = p.bands["twin"]
        each.add_row(
            p.job,
            str(p.seed),
            f"{p.slots:,}",
            f"{p.truth:,.0f}",
            *(f"{p.medians[name] / p.truth - 1:+.1%}" for name in ("laws", "twin")),
            f"{low / p.truth:.2f} to {high / p.truth:.2f}",
            "yes" if low <= p.truth <= high else "no",
            f"{p.weight:.0%}",
        )
    console.print(each)
    sums = Table(
        "job", "model", "in the 95 % band", "median error", "within 15 %", "largest error", "high / low of the band"
    )
    for job in [*dict.fromkeys(p.job for p in points), "all"]:
        own = [p for p in points if job in (p.job, "all")]
        for name in ("laws", "twin"):
            sums.add_row(job, "laws and twin" if name == "twin" else "laws", *summary(own, name))
    console.print(sums)


def options(description: str | None) -> argparse.ArgumentParser:
    """Which jobs are measured, and for which sizes the twin answers."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default=JOBS)
    parser.add_argument("--slots", default="200,500,1000")
    parser.add_argument("--seed", type=int, default=301, help="The first.")
    parser.add_argument("--seeds", type=int, default=1, help="How many.")
    return parser


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--keep", help="Folder for measurements, truths and twins, which are not made again.")
    asked = parser.parse_args()
    console, begin = Console(width=160), time.monotonic()
    sizes = [int(s) for s in asked.slots.split(",")]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(asked.keep or temporary)
        cases = [(name, seed) for seed in range(asked.seed, asked.seed + asked.seeds) for name in asked.jobs.split(",")]
        found = {case: known(folder, *case, sizes) for case in cases}
        points = [point for (_, seed), (run, truths) in found.items() for point in points_of(run, seed, truths)]
    report(console, points)
    console.print(f"{time.monotonic() - begin:.0f} s")


def known(folder: Path, name: str, seed: int, sizes: Sequence[int]) -> tuple[PipelineRun, dict[int, float]]:
    """What is measured for the models, and what they are compared with."""
    truth, path = Truth.drawn(seed), folder / f"{name}-{seed}.json"
    run = measured(name, seed, truth, path.with_suffix(""))
    if not path.exists():
        path.write_text(json.dumps(truths_of(run, truth, seed, sizes)), encoding="utf-8")
    return run, {int(slots): mst for slots, mst in json.loads(path.read_text(encoding="utf-8")).items()}


if __name__ == "__main__":
    main()
