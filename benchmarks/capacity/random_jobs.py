"""How well capacity models predict random jobs at ten times the slots, on a simulator whose physics are not the twin's.

    python -m benchmarks.capacity.random_jobs [--jobs 100] [--seed 7000] [--keep FOLDER] [--only-measure]

The jobs are those of `random_job_generator.py`, which states how they are drawn: numbers 0, 1, 2 ... of the seed until so many
are measured. Physics of the truth, measurements with at most 48 slots and the truth, here at 480 slots, are as in `twin.py`;
each job has physics of its own. A job is left out if it cannot be deployed or measured with 48 slots, and for no other reason:
before any model exists. Measurements and truths are made first and kept. Predictions are not kept, so that each call shows
what the present code predicts.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.capacity.random_job_generator import RandomJob, random_job
from benchmarks.capacity.truth import Truth, measured, opened, truths_of
from benchmarks.capacity.twin import Point, points_of, summary
from models.errors import InvalidInput, SluiceError
from pipelines.run import PipelineRun
from pipelines.store.workspace import Workspace

SLOTS = 480
MODELS = {"laws": "laws", "twin": "laws and twin"}


@dataclass(frozen=True)
class Case:
    """A job with its folder and its seed."""

    folder: Path
    seed: int
    drawn: RandomJob

    @classmethod
    def of(cls, keep: Path, seed: int, number: int) -> "Case":
        drawn = random_job(seed, number)
        case = cls(keep / drawn.job.name, seed * 1000 + number, drawn)
        text = drawn.job.model_dump_json(by_alias=True, indent=1)
        case.folder.mkdir(parents=True, exist_ok=True)
        if case._job_file.exists() and case._job_file.read_text(encoding="utf-8") != text:
            raise InvalidInput(
                f"{case._job_file} must be the job of its seed and number, but is not; keep in a new folder"
            )
        case._job_file.write_text(text, encoding="utf-8")
        return case

    @property
    def _job_file(self) -> Path:
        return self.folder / "job.json"

    @property
    def _outcome_file(self) -> Path:
        return self.folder.with_suffix(".json")

    @property
    def outcome(self) -> dict[str, Any] | None:
        """The truth with `mst`, or why there is none; None if not measured yet."""
        if not self._outcome_file.exists():
            return None
        outcome: dict[str, Any] = json.loads(self._outcome_file.read_text(encoding="utf-8"))
        return outcome

    def measure(self) -> dict[str, Any]:
        """The outcome; every end but an interrupt is one, so that none is lost."""
        begin = time.monotonic()
        outcome = self._measured() | {"elapsed_s": round(time.monotonic() - begin, 1)}
        self._outcome_file.write_text(json.dumps(outcome), encoding="utf-8")
        return outcome

    def _measured(self) -> dict[str, Any]:
        truth = Truth.drawn(self.seed)
        stage = "left out"
        try:
            run = measured(str(self._job_file), self.seed, truth, self.folder)
            stage = "no truth"
            return {"mst": truths_of(run, truth, self.seed, [SLOTS])[SLOTS]}
        except SluiceError as error:
            return {stage: str(error)}
        except (
            Exception
        ) as error:  # A fault of Sluice or of this script: counted apart, and the others are still measured.
            return {"failed": f"{type(error).__name__}: {error}"}

    def points(self, truth: float) -> list[Point]:
        """With a new twin: a stored one may come from earlier code."""
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(self.folder, folder, dirs_exist_ok=True)
            run: PipelineRun = replace(opened(str(self._job_file), self.seed, self.folder), workspace=Workspace(folder))
            return points_of(run, self.seed, {SLOTS: truth})


def measure(keep: Path, seed: int, wanted: int, console: Console) -> list[Case]:
    """All cases up to the last one that is wanted, each with its outcome."""
    cases: list[Case] = []
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("measured", total=wanted)
        for case in _drawn(keep, seed):
            outcome = case.outcome or case.measure()
            cases.append(case)
            console.print(f"{case.drawn.job.name}: {outcome}; {', '.join(case.drawn.traits)}", soft_wrap=True)
            progress.advance(bar, "mst" in outcome)
            if sum("mst" in (c.outcome or {}) for c in cases) == wanted:
                return cases
    raise AssertionError("numbers have no end")


def _drawn(keep: Path, seed: int) -> Iterator[Case]:
    number = 0
    while True:
        yield Case.of(keep, seed, number)
        number += 1


def predict(cases: Sequence[Case], console: Console) -> list[tuple[Case, Point]]:
    """What the models say of each job that has a truth; a job without an answer is reported."""
    known = [(case, case.outcome["mst"]) for case in cases if case.outcome and "mst" in case.outcome]
    points = []
    with Progress(console=console, transient=True) as progress:
        for case, truth in progress.track(known, description="predicted"):
            try:
                points += [(case, point) for point in case.points(truth)]
            except SluiceError as error:
                console.print(f"{case.drawn.job.name}: no answer: {error}", soft_wrap=True)
    console.print(f"{len(points)} of {len(known)} jobs have an answer")
    return points


def report(console: Console, points: Sequence[tuple[Case, Point]]) -> None:
    """A row for each job, the largest errors last; then the sums by what jobs are like."""
    each = Table("job", f"MST at {SLOTS}", "laws", "with twin", "95 % band", "covers", "weight of twin", "the job")
    for case, p in sorted(points, key=lambda one: abs(one[1].medians["twin"] / one[1].truth - 1)):
        low, high = p.bands["twin"]
        each.add_row(
            case.drawn.job.name,
            f"{p.truth:,.0f}",
            *(f"{p.medians[name] / p.truth - 1:+.1%}" for name in MODELS),
            f"{low / p.truth:.2f} to {high / p.truth:.2f}",
            "yes" if low <= p.truth <= high else "no",
            f"{p.weight:.0%}",
            f"{len(case.drawn.job.operators)} operators, {', '.join(case.drawn.traits)}",
        )
    console.print(each)
    sums = Table(
        "jobs", "model", "in the 95 % band", "median error", "within 15 %", "largest error", "high / low of band"
    )
    for trait in [*sorted({t for case, _ in points for t in case.drawn.traits}), "all"]:
        own = [p for case, p in points if trait in (*case.drawn.traits, "all")]
        for name, title in MODELS.items():
            sums.add_row(trait, title, *summary(own, name))
    console.print(sums)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=100, help="How many that have a truth.")
    parser.add_argument("--seed", type=int, default=7000, help="Of the generator.")
    parser.add_argument("--keep", help="Folder for jobs, measurements and truths, which are not made again.")
    parser.add_argument("--only-measure", action="store_true", help="Stop before the models.")
    asked = parser.parse_args()
    console, begin = Console(width=200, highlight=False), time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        cases = measure(Path(asked.keep or temporary).resolve(), asked.seed, asked.jobs, console)
        for why in ("left out", "no truth", "failed"):
            count = sum(why in (case.outcome or {}) for case in cases)
            console.print(f"{why}: {count} of {len(cases)} jobs drawn")
        if not asked.only_measure:
            report(console, predict(cases, console))
    console.print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
