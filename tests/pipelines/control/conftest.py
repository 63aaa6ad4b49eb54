"""A simulated job with an autopilot."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from autopilots.flight import Flight
from flink.steered import SimulatedClock, SteeredFlink, SteeredJob
from pipelines.store.workspace import Workspace


@pytest.fixture
def flight(tmp_path: Path) -> Iterator[Flight]:
    clock = SimulatedClock()
    job = SteeredJob(clock)
    with SteeredFlink(job) as flink:
        made = Flight(clock, job, flink, Workspace(tmp_path))
        yield made
        for rest in made.rests:
            rest.close()
