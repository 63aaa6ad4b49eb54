"""How well the capacity model of `sluice plan`, with its twin, predicts configurations of a real Flink that it has not seen.

    python -m benchmarks.flink.capacity [--jobs q1,q2,q5,q8,q11] [--keep FOLDER]

Each Nexmark query is profiled and explored on the Flink that `sluice plan JOB --testbed flink` starts on this machine (4
TaskManagers of 4 slots and 0.15 cores), with a third of its slots at most, or two more than the query has operators. The
twin is made of the samples. Then the MST is measured twice at each of three larger sizes, up to all slots. No model sees
these. The share of the processor time that the hypervisor took meanwhile is stated. Measurements are kept in the folder.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from models.capacity.growth.dataset import Dataset
from models.capacity.observation import Budget
from models.capacity.selection import select
from models.plan.parts import Interval
from pipelines.inputs.plan_request import PlanRequest
from pipelines.measuring.configure import Optimizer
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.measuring.flink import MEMORY_MB
from pipelines.measuring.testbeds import kept_open, measuring, opened_testbed
from pipelines.progress import LineProgress
from pipelines.run import PipelineRun
from pipelines.stages.check import check
from pipelines.stages.explore import explore
from pipelines.stages.profile import PROFILE_FILE, ProfileRecord, profile
from pipelines.stages.twin import TWIN_FILE, TwinRecord, twin
from pipelines.store.workspace import Workspace
from testbeds.flink.lab.stolen import StolenTime

SLOTS: Final = 16
HELD_OUT: Final = 3
REPEATS: Final = 2


@dataclass(frozen=True)
class HeldOut:
    """What was measured at a size, records/s, and the stolen share of the processor time meanwhile."""

    slots: int
    mst: Sequence[float]
    stolen: float


def explored(query: str, folder: Path) -> tuple[PipelineRun, list[HeldOut]]:
    """What the models may see, and what they are compared with."""
    job = f"nexmark-{query}"
    path = folder / f"{query}.json"
    request = PlanRequest(job=job, testbed="flink", cluster="flink-local", rate=1.0, run="r", max_measurements=3)
    run = PipelineRun(request, Workspace(str(folder / query)), LineProgress(print))
    fewest = len(run.job.scaled_operators)
    most = max(SLOTS // 3, fewest + 2)
    with kept_open():
        profile(run)
        # About what all slots take.
        rate = run.output(PROFILE_FILE, ProfileRecord).saturated_rate * SLOTS / fewest
        asked = request.model_copy(update={"max_task_slots": most, "rate": rate})
        run = PipelineRun(asked, run.workspace, run.progress)
        explore(run)
        if not path.exists():
            step = (SLOTS - most) / HELD_OUT
            sizes = [round(most + step * (i + 1)) for i in range(HELD_OUT)]
            path.write_text(json.dumps([asdict(_measured(run, n)) for n in sizes]), encoding="utf-8")
    check(run)
    return run, [HeldOut(**one) for one in json.loads(path.read_text(encoding="utf-8"))]


def _measured(run: PipelineRun, slots: int) -> HeldOut:
    known = run.output(PROFILE_FILE, ProfileRecord)
    largest = max(run.output(EXPLORATION_FILE, ExplorationRecord).observations, key=lambda o: o.task_slots)
    stolen, found = StolenTime(), []
    with opened_testbed(run) as testbed:
        optimizer = Optimizer(
            run.job, testbed, known.source_rate_per_task, known.operators, measuring(run).mst, say=run.progress.say
        )
        for repeat in range(REPEATS):
            name = f"held-out-{slots}-{repeat}"
            one = optimizer.measure(Budget(task_slots=slots, memory_mb=MEMORY_MB[0]), largest.operators, name, repeat)
            found.append(one.observation.mst)
    return HeldOut(slots, found, stolen.share())


def report(console: Console, results: dict[str, tuple[PipelineRun, list[HeldOut]]]) -> None:
    """A row for each held-out size, then the sums."""
    table = Table("job", "slots", "measured MST", "stolen", "laws", "with twin", "95 % band", "covers")
    errors: dict[str, list[float]] = {"laws": [], "twin": []}
    covered = 0
    for query, (run, held_out) in results.items():
        data = Dataset.of(run.output(EXPLORATION_FILE, ExplorationRecord).observations)
        curve = run.output(TWIN_FILE, TwinRecord).curve
        models = {"laws": select(data).model, "twin": select(data, twin=curve).model}
        for one in held_out:
            truth = statistics.fmean(one.mst)
            said: dict[str, Interval] = {n: m.interval(MEMORY_MB[0], one.slots) for n, m in models.items()}
            for name, interval in said.items():
                errors[name].append(abs(interval.value / truth - 1))
            band = said["twin"]
            covered += band.low <= truth <= band.high
            table.add_row(
                *(query, str(one.slots), ", ".join(f"{m:,.0f}" for m in one.mst), f"{one.stolen:.0%}"),
                *(f"{said[name].value / truth - 1:+.1%}" for name in ("laws", "twin")),
                *(
                    f"{band.low / truth:.2f} to {band.high / truth:.2f}",
                    "yes" if band.low <= truth <= band.high else "no",
                ),
            )
    console.print(table)
    for name, own in errors.items():
        console.print(f"{name}: median error {statistics.median(own):.1%}, largest {max(own):.0%} of {len(own)}")
    console.print(f"{covered} of {len(errors['twin'])} inside of the 95 % band with the twin")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", default="q1,q2,q5,q8,q11")
    parser.add_argument("--keep", help="Folder for measurements, which are not made again.")
    asked = parser.parse_args()
    console, begin = Console(width=140), time.monotonic()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(asked.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        results = {query: explored(query, folder) for query in asked.jobs.split(",")}
        for run, held_out in results.values():
            twin(run, also=[one.slots for one in held_out])
        report(console, results)
    console.print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
