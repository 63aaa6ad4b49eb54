"""What each minute of the testbed brings: the exploration for a target rate beside StreamBed's, on the simulator.

    python -m benchmarks.capacity.exploration_minutes [--jobs nexmark-q1,...] [--slots 500] [--seed 0] [--seeds 1]
        [--precision 0.25]

For each job and seed StreamBed's exploration runs first, with at most 48 slots; its minutes are the whole. The simulator's
own MST at `--slots` (as in `extrapolation.py`) is the target rate, so that the slots needed are known: `--slots`. Then the
exploration for that rate runs. From the observations that fit into half of the minutes and into all of them: error of the
median number of slots, and the 95 % interval. A measurement takes its MST search, a single-task run that it needs, and
135 s for each deployment (StreamBed's calls take 13 and 24 minutes for searches of 645 s). What is kept back for the
review is the same for both, and not counted.
"""

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.capacity.extrapolation import MEMORY_MB, Built, LargeScale
from models.capacity.growth.dataset import Dataset
from models.capacity.observation import Observation
from models.capacity.selection import select
from models.capacity.sizing import Margin, slots_interval
from models.errors import SluiceError
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.exploration_record import ExplorationRecord
from pipelines.run import PipelineRun
from pipelines.stages.explore import explore
from pipelines.stages.profile import ProfileRecord, profile
from pipelines.store.workspace import Workspace

DEPLOYMENT_MIN = 135 / 60


@dataclass(frozen=True)
class Explored:
    """An exploration, with the minutes after which each observation was known."""

    built: Built
    minutes: tuple[float, ...]
    reason: str

    def within(self, minutes: float) -> list[Observation]:
        return [o for o, at in zip(self.built.observations, self.minutes, strict=True) if at <= minutes]


def explored(name: str, seed: int, exploration: str, rate: float, precision: float) -> Explored:
    """Run profile and exploration as `sluice plan` does."""
    with tempfile.TemporaryDirectory() as folder:
        request = PlanRequest(
            job=name, rate=rate, seed=seed, exploration=exploration, precision=precision, memory_mb=MEMORY_MB
        )
        run = PipelineRun(request, Workspace(folder))
        profile(run)
        explore(run)
        record = run.output("exploration.json", ExplorationRecord)
        rates = run.output("profile.json", ProfileRecord).source_rate_per_task
        built = Built(run.job, record.observations, rates)
        return Explored(built, elapsed(record.observations), record.stopped_because)


def elapsed(observations: Sequence[Observation]) -> tuple[float, ...]:
    """Minutes until each was known; a memory size that is new needs a single-task run first, of about the same length."""
    fewest, known, total, reached = min(o.task_slots for o in observations), set[float](), 0.0, []
    for o in observations:
        runs = 1 if o.memory_mb in known or o.task_slots == fewest else 2
        known.add(o.memory_mb)
        total += runs * (o.measured_s / 60 + DEPLOYMENT_MIN)
        reached.append(total)
    return tuple(reached)


@dataclass(frozen=True)
class Outcome:
    """What the observations say about the slots for the rate."""

    error: float | None
    """Log of the median number of slots over the truth; None without a median."""
    low: float
    high: float
    covered: bool


def outcome(observations: Sequence[Observation], rate: float, truth: int) -> Outcome:
    try:
        slots = slots_interval(select(Dataset.of(observations)).model, MEMORY_MB, rate, Margin(risk=0.5))
    except SluiceError:
        return Outcome(None, 1, math.inf, True)
    high = math.inf if slots.high is None else slots.high
    return Outcome(math.log(slots.value / truth), slots.low, high, slots.low <= truth <= high)


def summary(outcomes: Sequence[Outcome]) -> str:
    errors = [math.inf if o.error is None else abs(o.error) for o in outcomes]
    widths = [o.high / o.low for o in outcomes]
    covered = sum(o.covered for o in outcomes)
    return (
        f"median error {math.expm1(statistics.median(errors)):.0%}, within 15 % {sum(e <= math.log(1.15) for e in errors)}, "
        f"median width {statistics.median(widths):.1f}, cover {covered} of {len(outcomes)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="nexmark-q1,nexmark-q2,nexmark-q3,nexmark-q5,nexmark-q8,nexmark-q11")
    parser.add_argument("--slots", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0, help="The first.")
    parser.add_argument("--seeds", type=int, default=1, help="How many.")
    parser.add_argument("--precision", type=float, default=0.25)
    asked = parser.parse_args()
    console, begin = Console(width=150), time.monotonic()
    table = Table("job", "seed", "exploration", "minutes", "measured", "median", "error", "95 % interval", "covers")
    by_kind: dict[tuple[str, str], list[Outcome]] = {}
    for name in asked.jobs.split(","):
        for seed in range(asked.seed, asked.seed + asked.seeds):
            streambed = explored(name, seed, "streambed", 1e6, asked.precision)
            rate = LargeScale(streambed.built, asked.slots).mst(1e6, seed)
            target = explored(name, seed, "target", rate, asked.precision)
            whole = streambed.minutes[-1]
            for share, limit in (("half", whole / 2), ("whole", whole)):
                for kind, run in (("streambed", streambed), ("target", target)):
                    known = run.within(limit)
                    found = outcome(known, rate, asked.slots)
                    by_kind.setdefault((share, kind), []).append(found)
                    table.add_row(
                        name,
                        str(seed),
                        kind,
                        f"{run.minutes[len(known) - 1]:.0f}",
                        str(len(known)),
                        "-" if found.error is None else f"{asked.slots * math.exp(found.error):,.0f}",
                        "-" if found.error is None else f"{math.expm1(found.error):+.0%}",
                        f"{found.low:,.0f} to {found.high:,.0f}",
                        "yes" if found.covered else "no",
                    )
            console.print(
                f"{name} seed {seed}: {rate:,.0f} records/s; target: {target.minutes[-1]:.0f} min, {target.reason}"
            )
    console.print(table)
    for (share, kind), outcomes in by_kind.items():
        console.print(f"{share:5s} {kind:9s} {summary(outcomes)}")
    console.print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
