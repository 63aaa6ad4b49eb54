"""What each minute of the testbed brings to a capacity model with a twin: error and coverage after a part of the exploration.

    python -m benchmarks.capacity.twin_minutes --keep FOLDER [--jobs nexmark-q1,...] [--seed 301] [--seeds 1]
        [--shares 0.25,0.5,0.75,1]

The cases are those of `twin.py` with the same folder, on physics that are not the twin's. After a share of the minutes of
StreamBed's exploration (as `exploration_minutes.py` counts them) only what was measured by then is known: to the growth
laws, and to the twin, which is made from it. Never fewer than the four corners.
"""

import shutil
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.capacity.exploration_minutes import elapsed
from benchmarks.capacity.twin import Point, known, options, points_of, summary
from pipelines.measuring.exploration_record import EXPLORATION_FILE, ExplorationRecord
from pipelines.run import PipelineRun
from pipelines.store.workspace import Artifact, Workspace

CORNERS = 4


def after(run: PipelineRun, share: float, folder: str) -> tuple[PipelineRun, float]:
    """The run as it was after a share of its minutes, and these."""
    shutil.copytree(run.workspace.url.removeprefix("file://"), folder, dirs_exist_ok=True)
    early, key = replace(run, workspace=Workspace(folder)), run.key(EXPLORATION_FILE)
    record = run.output(EXPLORATION_FILE, ExplorationRecord)
    minutes = elapsed(record.observations)
    count = max(CORNERS, sum(at <= share * minutes[-1] for at in minutes))
    inputs = run.workspace.read(key, Artifact).inputs
    early.workspace.delete(key)
    shortened = record.model_copy(update={"observations": record.observations[:count]})
    early.workspace.once(key, inputs, ExplorationRecord, lambda: shortened)
    return early, minutes[count - 1]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--shares", default="0.25,0.5,0.75,1")
    parser.add_argument("--keep", required=True, help="Folder of `twin.py`.")
    asked = parser.parse_args()
    console, begin = Console(width=140), time.monotonic()
    sizes = [int(s) for s in asked.slots.split(",")]
    points: dict[float, list[Point]] = {float(share): [] for share in asked.shares.split(",")}
    minutes: dict[float, list[float]] = {share: [] for share in points}
    for seed in range(asked.seed, asked.seed + asked.seeds):
        for name in asked.jobs.split(","):
            run, truths = known(Path(asked.keep), name, seed, sizes)
            for share in points:
                with tempfile.TemporaryDirectory() as folder:
                    early, took = after(run, share, folder)
                    points[share] += points_of(early, seed, truths)
                    minutes[share].append(took)
    table = Table(
        *("share", "minutes (median)", "model", "in the 95 % band", "median error", "within 15 %", "largest error"),
        "high / low of the band",
    )
    for share, own in points.items():
        for name in ("laws", "twin"):
            about = f"{share:.0%}", f"{statistics.median(minutes[share]):.0f}"
            table.add_row(*about, "laws and twin" if name == "twin" else "laws", *summary(own, name))
    console.print(table)
    console.print(f"{time.monotonic() - begin:.0f} s")


if __name__ == "__main__":
    main()
