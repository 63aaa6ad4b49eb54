"""A simulated job that a FlinkDeployment deploys, and the operator's part."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autopilots.flight import Flight
from on_kubernetes.steered_operator import REFERENCE, SteeredOperator
from pipelines.control.autopilot import Autopilot
from pipelines.control.request import DeploymentTarget

Made = Callable[..., Autopilot]


@pytest.fixture
def operator(flight: Flight, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SteeredOperator]:
    """The rate takes 7 counting tasks of 400 records/s after 30 s."""
    flight.job.rate = lambda t: 1000.0 if t < 30 else 2600.0
    made = SteeredOperator(flight.job, flight.clock)
    flight.flink.before = lambda method, path: made.act()
    with made.server:
        monkeypatch.setenv("KUBECONFIG", str(made.kubeconfig(tmp_path)))
        yield made


@pytest.fixture
def autopilot(flight: Flight, operator: SteeredOperator) -> Made:
    """Makes an autopilot that acts on the FlinkDeployment."""

    def make(through: Any = "operator", **given: Any) -> Autopilot:
        return flight.autopilot(deployment=DeploymentTarget(REFERENCE, None, through), **{"timeout_s": 10.0, **given})

    return make
