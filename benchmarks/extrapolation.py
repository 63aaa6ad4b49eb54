"""How well a model built on the simulator with at most 48 slots predicts the simulator's own MST at 200, 500 and 1,000.

    python benchmarks/extrapolation.py [--jobs nexmark-q1,...] [--slots 200,500,1000] [--repeats 3] [--seed 0]

The model is built as `sluice plan` builds it: profile, corners and Bayesian optimisation on 3 workers of 16 slots, MST
search for each budget, selection by the extrapolation split. The true MST at a larger scale is measured as in StreamBed's
production runs: the configuration of BIDS2 from the rates of the largest run (section 6), on as many workers as it needs,
newly deployed for each rate, 5 minutes of ramp-up and 10 minutes of observation; a rate is sustained from 99 % on. The
median of several deployments is shown, since their speed differs by some 5 %.
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
from models.capacity.observation import Observation
from models.capacity.selection import select
from models.capacity.surrogates import SURROGATES, Dataset
from models.job import Job
from pipelines.inputs.plan_request import PlanRequest
from pipelines.run import PipelineRun
from pipelines.stages.explore import ExplorationRecord, explore
from pipelines.stages.profile import ProfileRecord, profile
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
        run = PipelineRun(PlanRequest(job=name, rate=1e6, seed=seed), Workspace(folder))
        profile(run)
        explore(run)
        record = run.output("exploration.json", ExplorationRecord)
        rates = run.output("profile.json", ProfileRecord).source_rate_per_task
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


def add_rows(table: Table, built: Built, sizes: list[int], repeats: int, seed: int) -> list[float]:
    """One row a size; returns the relative errors of the selected model."""
    selection = select(Dataset.of(built.observations))
    errors = []
    for slots in sizes:
        predicted = {name: float(selection.candidates[name].predict(MEMORY_MB, slots)) for name in SURROGATES}
        large, guess = LargeScale(built, slots), max(predicted[selection.model], 1e4)
        truth = statistics.median(large.mst(guess, seed + r) for r in range(repeats))
        error = {name: value / truth - 1 for name, value in predicted.items()}
        errors.append(error[selection.model])
        table.add_row(
            built.job.name,
            f"{len(built.observations)}",
            selection.model,
            f"{slots:,}",
            f"{truth:,.0f}",
            f"{predicted[selection.model]:,.0f}",
            f"{error[selection.model]:+.0%}",
            " ".join(f"{name} {value:+.0%}" for name, value in error.items()),
        )
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="nexmark-q1,nexmark-q5,nexmark-q8,nexmark-q11")
    parser.add_argument("--slots", default="200,500,1000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    console, begin = Console(width=140), time.monotonic()
    table = Table("job", "runs", "model", "slots", "MST", "predicted", "error", "errors of all candidates")
    errors: list[float] = []
    for name in asked.jobs.split(","):
        sizes = [int(s) for s in asked.slots.split(",")]
        errors += add_rows(table, build(name, asked.seed), sizes, asked.repeats, asked.seed)
    console.print(table)
    within = sum(abs(e) <= 0.15 for e in errors)
    console.print(f"{within} of {len(errors)} within 15 %; {time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
