"""A simulated job, and a catalogue whose file of it asks for an autopilot."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from autopilots.flight import DS2, Flight
from flink.steered import SimulatedClock, SteeredFlink, SteeredJob
from pipelines.store.workspace import Workspace

OPERATORS = [
    {"name": "clicks", "kind": "source", "cost": {"cpu_s": 1e-5}, "figures_from": "made up"},
    {"name": "count", "cost": {"cpu_s": 1e-4}, "figures_from": "made up"},
    {"name": "out", "kind": "sink", "cost": {"cpu_s": 1e-5}, "figures_from": "made up"},
]
EDGES = [
    {"from": "clicks", "to": "count", "partitioning": "rebalance"},
    {"from": "count", "to": "out", "partitioning": "rebalance"},
]


@pytest.fixture
def flight(tmp_path: Path) -> Iterator[Flight]:
    """Twice the rate that its tasks take arrives after 53 s, most of the sixth interval, so that a policy must act."""
    clock = SimulatedClock()
    job = SteeredJob(clock)
    job.rate = lambda t: 1000.0 if t < 53 else 3000.0
    with SteeredFlink(job) as flink:
        yield Flight(clock, job, flink, Workspace(tmp_path / "workspace"))


@pytest.fixture
def says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flight: Flight) -> Callable[..., Path]:
    """Writes the file of the job in a catalogue, with the rules of its autopilot."""
    folder = tmp_path / "catalogue"
    for kind in ("jobs", "clusters"):
        (folder / kind).mkdir(parents=True)
    monkeypatch.setenv("SLUICE_CATALOGUE", str(folder))

    def write(job: str = "clicks", *, operations: dict[str, Any] | None = None, **rules: Any) -> Path:
        limits = {"settle_s": 5.0, "least_between_s": 30.0}
        asked = {
            "flink": flight.flink.url,
            "policy": "ds2",
            "settings": DS2,
            "limits": limits,
            "timeout_s": 20.0,
            **rules,
        }
        document = {
            "name": job,
            "description": "Counts clicks.",
            "figures_from": "made up",
            "operators": OPERATORS,
            "edges": EDGES,
            "operations": {"autopilot": asked} if operations is None else operations,
        }
        path = folder / "jobs" / f"{job}.yaml"
        path.write_text(yaml.safe_dump(document))
        return path

    return write
