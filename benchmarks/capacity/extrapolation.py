"""How well a model built on the simulator with at most 48 slots predicts the simulator's own MST at 200, 500 and 1,000.

    python -m benchmarks.capacity.extrapolation [--jobs nexmark-q1,...] [--slots 200,500,1000] [--repeats 3]
        [--seed 0] [--seeds 1]

The model is built as `sluice plan --exploration streambed` builds it: profile, corners and Bayesian optimisation on 3
workers of 16 slots, MST search for each budget, growth laws stacked by LOOCV. The true MST at a larger scale is measured
as in StreamBed's production runs: the configuration of BIDS2 from the rates of the largest run (section 6), on as many
workers as it needs, newly deployed for each rate, 5 minutes of ramp-up and 10 minutes of observation; a rate is sustained
from 99 % on. The median of several deployments is shown, since their speed differs by some 5 %.
"""

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from models.capacity.bids2 import bids2
from models.capacity.growth.dataset import Dataset
from models.capacity.observation import Observation
from models.capacity.selection import select
from models.job import Job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.run import PipelineRun
from pipelines.stages.explore import explore
from pipelines.stages.profile import PROFILE_FILE, ProfileRecord, profile
from pipelines.store.workspace import Workspace
from testbeds.protocol import Configuration
from testbeds.simulator import Simulator, streambed_cluster

MEMORY_MB = 65536.0
RAMP_S, OBSERVE_S, SUSTAINED, PRECISION = 300.0, 600.0, 0.99, 0.01


@dataclass(frozen=True)
class Built:
    """The model from small runs."""

    job: Job
    observations: tuple[Observation, ...]
    source_rates: Mapping[str, float]


def build(name: str, seed: int) -> Built:
    """Explore with at most 48 slots, as the pipeline does."""
    with tempfile.TemporaryDirectory() as folder:
        run = PipelineRun(PlanRequest(job=name, rate=1e6, seed=seed, exploration="streambed"), Workspace(folder))
        profile(run)
        explore(run)
        record = run.output(EXPLORATION_FILE, ExplorationRecord)
        rates = run.output(PROFILE_FILE, ProfileRecord).source_rate_per_task
        return Built(run.job, record.observations, rates)


class LargeScale:
    """A configuration at a scale that the testbed does not have."""

    def __init__(self, built: Built, slots: int) -> None:
        largest = max(built.observations, key=lambda o: (o.task_slots, o.memory_mb))
        self._built, self._best = built, bids2(largest.operators, slots)
        self._testbed = Simulator(streambed_cluster(math.ceil(slots / 16)))

    def sustains(self, rate: float, seed: int) -> bool:
        sources = {
            s.name: math.ceil(2 * rate * s.rate_share / self._built.source_rates[s.name])
            for s in self._built.job.sources
        }
        asked = Configuration({**sources, **self._best.parallelism}, MEMORY_MB)
        with self._testbed.deploy(self._built.job, asked, run="large", seed=seed) as run:
            if run.inject(rate, RAMP_S, "ramp").achieved_rate < 0.8 * rate:
                return False
            return run.inject(rate, OBSERVE_S, "observe").achieved_rate >= SUSTAINED * rate

    def mst(self, guess: float, seed: int) -> float:
        """Highest sustained rate, to PRECISION, by bisection on the logarithm."""
        low, high = guess, guess
        if self.sustains(guess, seed):
            while self.sustains(high := high * 1.5, seed):
                low = high
        else:
            while not self.sustains(low := low / 1.5, seed):
                high = low
        while high / low > 1 + PRECISION:
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.sustains(middle, seed) else (low, middle)
        return low


@dataclass(frozen=True)
class Point:
    """What a model says at a larger scale, relative to the truth."""

    error: float
    covered: bool
    """The truth lies in the 95 % band."""
    sure: float
    """Probability by the model that the truth is sustained: 0.5 for a perfect median."""


def add_rows(table: Table, built: Built, sizes: list[int], repeats: int, seed: int) -> list[Point]:
    """One row a size."""
    model = select(Dataset.of(built.observations)).model
    points = []
    for slots in sizes:
        band = model.interval(MEMORY_MB, slots)
        large = LargeScale(built, slots)
        truth = statistics.median(large.mst(max(band.value, 1e4), seed + r) for r in range(repeats))
        sure = float(model.sustains(MEMORY_MB, slots, truth)[0])
        points.append(Point(band.value / truth - 1, band.low <= truth <= band.high, sure))
        table.add_row(
            built.job.name,
            str(seed),
            f"{len(built.observations)}",
            f"{slots:,}",
            f"{truth:,.0f}",
            f"{band.value:,.0f}",
            f"{points[-1].error:+.0%}",
            f"{band.low:,.0f} to {band.high:,.0f}",
            "yes" if points[-1].covered else "no",
            " ".join(f"{law} {weight:.0%}" for law, weight in model.weights.items() if weight >= 0.05),
        )
    return points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="nexmark-q1,nexmark-q5,nexmark-q8,nexmark-q11")
    parser.add_argument("--slots", default="200,500,1000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0, help="The first.")
    parser.add_argument("--seeds", type=int, default=1, help="How many.")
    asked = parser.parse_args()
    console, begin = Console(width=180), time.monotonic()
    table = Table("job", "seed", "runs", "slots", "MST", "median", "error", "95 % band", "covers", "weights")
    points: list[Point] = []
    for name in asked.jobs.split(","):
        sizes = [int(s) for s in asked.slots.split(",")]
        for seed in range(asked.seed, asked.seed + asked.seeds):
            points += add_rows(table, build(name, seed), sizes, asked.repeats, seed)
    console.print(table)
    within, covered = sum(abs(p.error) <= 0.15 for p in points), sum(p.covered for p in points)
    short = sum(p.sure > 0.9 for p in points)
    console.print(
        f"of {len(points)}: {within} medians within 15 %, {covered} in their 95 % bands, {short} below the 10 % quantile; "
        f"{time.monotonic() - begin:.0f} s"
    )


if __name__ == "__main__":
    main()
