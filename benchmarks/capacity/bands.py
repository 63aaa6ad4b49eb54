"""Intervals of the MST at the size of production, by the first rows of published searches, against what production achieved.

    python -m benchmarks.capacity.bands [--fewest 6] [--risk 0.1] [--twin]

For each query and each number of first rows: the median MST at the slots of production with its 95 % band, whether the band
touches what the production runs achieved (StreamBed's artifact: 99 % of the injected rate sustained, or the rate reached where
more was injected), and the task slots that the published target rate needs. Without `--twin` from these rows alone; with it the
simulation of the catalogue's job joins the growth laws. Costs of these jobs come from published rates of single tasks and small
sizes (the jobs' files say which), none from production.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from models.capacity.growth.capacity_model import CapacityModel
from models.capacity.growth.dataset import Dataset
from models.capacity.growth.twin import TwinCurve
from models.capacity.observation import Observation
from models.capacity.selection import select
from models.capacity.sizing import Margin, slots_interval
from models.errors import Infeasible
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.inputs.measurements import read_measurements
from pipelines.twin.from_job import twin_of_job

NEAR: Final = 0.15
PUBLISHED = Path(__file__).parents[2] / "tests" / "data" / "streambed"


@dataclass(frozen=True)
class Production:
    """A published plan, and the MST that its production runs bracket."""

    query: str
    memory_mb: float
    task_slots: int
    low: float
    high: float
    rate: float
    """That was planned for, records/s."""


RUNS = (
    Production("q1", 65536, 179, low=186e6, high=208e6, rate=160e6),
    Production("q5", 65536, 1079, low=3.0e6, high=4.2e6, rate=2.5e6),
)


def needed(model: CapacityModel, run: Production, margin: Margin, fewest: int) -> str:
    try:
        slots = slots_interval(model, run.memory_mb, run.rate, margin, fewest)
    except Infeasible:
        return "no number"
    return f"{slots.value:,} ({slots.low:,} to {'-' if slots.high is None else f'{slots.high:,}'})"


def twin_curve(run: Production, observations: tuple[Observation, ...]) -> TwinCurve:
    """What the simulator predicts of the query at the measured sizes and beyond that of production."""
    job, worker = load_job(f"nexmark-{run.query}"), load_cluster("testbed").workers[0]
    return twin_of_job(job, worker, observations, run.memory_mb, run.high, lambda line: None)


def off(predicted: float, run: Production) -> float:
    """Relative distance of a prediction from the bracket."""
    return min(0.0, predicted / run.low - 1) + max(0.0, predicted / run.high - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fewest", type=int, default=6)
    parser.add_argument("--risk", type=float, default=0.1)
    parser.add_argument("--twin", action="store_true")
    asked = parser.parse_args()
    table = Table("query", "rows", "median MST", "95 % band", "production", "touches", "off", "slots", "weights")
    touched = total = near = 0
    for run in RUNS:
        observations = read_measurements(PUBLISHED / f"search_{run.query}.csv")
        curve = twin_curve(run, observations) if asked.twin else None
        for rows in range(asked.fewest, len(observations) + 1):
            data = Dataset.of(observations[:rows])
            model = select(data, twin=curve).model
            band = model.interval(run.memory_mb, run.task_slots)
            touches = band.low <= run.high and band.high >= run.low
            touched, total = touched + touches, total + 1
            near += abs(off(band.value, run)) <= NEAR
            table.add_row(
                run.query,
                str(rows),
                f"{band.value / 1e6:,.1f} M",
                f"{band.low / 1e6:,.1f} to {band.high / 1e6:,.1f} M",
                f"{run.low / 1e6:,.1f} to {run.high / 1e6:,.1f} M",
                "yes" if touches else "no",
                f"{off(band.value, run):+.0%}",
                needed(model, run, Margin(risk=asked.risk), data.fewest_slots),
                " ".join(f"{law} {weight:.0%}" for law, weight in model.weights.items() if weight >= 0.05),
            )
    console = Console(width=170)
    console.print(table)
    console.print(
        f"{touched} of {total} bands touch what production achieved; {near} medians are within {NEAR:.0%} of it"
    )


if __name__ == "__main__":
    main()
