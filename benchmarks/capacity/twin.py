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
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.capacity.truth import MEMORY_MB, Truth, measured, truths_of
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.twin import TWIN
from models.capacity.selection import select
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.run import PipelineRun
from pipelines.stages.twin import TWIN_FILE, TwinRecord, twin

JOBS = "nexmark-q1,nexmark-q2,nexmark-q3,nexmark-q5,nexmark-q8,nexmark-q11"


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
