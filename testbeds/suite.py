"""What all suites of testbeds share: their base, a small job, and the rates at which it is measured."""

from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from models.capacity.mst import MstSettings
from models.errors import SluiceError
from models.job import Job
from testbeds.protocol import Configuration, MeasuredWindow, Run, Testbed

OVERLOAD = 1e8
"""Records/s beyond every testbed, which then emits what it can."""


def small_job() -> Job:
    """A source, a map, a keyed count with little state, and a sink."""
    return Job.model_validate(
        {
            "name": "conformance",
            "description": "A job that every testbed can run.",
            "figures_from": "assumed: of the order of Nexmark q11.",
            "operators": [
                {
                    "name": "source",
                    "kind": "source",
                    "cost": {"cpu_s": 2e-6, "bytes_out": 100},
                    "figures_from": "assumed",
                },
                {
                    "name": "map",
                    "cost": {"cpu_s": 4e-6, "bytes_out": 50},
                    "selectivity": 0.5,
                    "figures_from": "assumed",
                },
                {
                    "name": "count",
                    "cost": {"cpu_s": 2e-5, "state_read_bytes": 100, "state_write_bytes": 100, "bytes_out": 50},
                    "keys": {"distinct": 10000},
                    "state": {"bytes_per_key": 100},
                    "figures_from": "assumed",
                },
                {"name": "sink", "kind": "sink", "cost": {"cpu_s": 1e-6}, "selectivity": 0, "figures_from": "assumed"},
            ],
            "edges": [
                {"from": "source", "to": "map", "partitioning": "rebalance"},
                {"from": "map", "to": "count", "partitioning": "hash"},
                {"from": "count", "to": "sink", "partitioning": "rebalance"},
            ],
        }
    )


class Suite:
    """Base of all suites of testbeds."""

    settle_s: ClassVar[float] = 120.0
    """Time after which a deployment has reached its full speed."""
    window_s: ClassVar[float] = 30.0
    tolerance: ClassVar[float] = 1e-6
    """Share of the records that may be counted in one window or the next: 0 where one clock counts all."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Only run subclasses in other modules."""
        super().__init_subclass__(**kwargs)
        cls.__test__ = not cls.__module__.startswith(f"{__package__}.")  # type: ignore[attr-defined]

    @pytest.fixture
    def job(self) -> Job:
        return small_job()

    @pytest.fixture
    def configuration(self, testbed: Testbed, job: Job) -> Configuration:
        """One task of each operator, enough sources not to limit the job, the largest memory."""
        tasks = {o.name: 1 for o in job.operators} | {o.name: 2 for o in job.sources}
        return Configuration(parallelism=tasks, memory_mb=testbed.limits.memory_levels_mb[-1])


class DeployedSuite(Suite):
    """Base of the parts of the conformance suite."""

    places_tasks: ClassVar[bool] = True
    """False for testbeds that refuse a placement."""
    mst: ClassVar[MstSettings] = MstSettings(warmup_rate=OVERLOAD, iterations=12)
    """Settings of the MST search."""

    @pytest.fixture
    def run(self, testbed: Testbed, job: Job, configuration: Configuration) -> Iterator[Run]:
        with testbed.deploy(job, configuration, run="conformance-1", seed=1) as deployed:
            yield deployed

    def _refused(self, testbed: Testbed, job: Job, configuration: Configuration, error: type[SluiceError]) -> None:
        with pytest.raises(error) as caught:
            testbed.deploy(job, configuration, run="conformance-1", seed=1)
        assert type(caught.value) is error and len(str(caught.value)) > 20


def windows_of(run: Run, window_s: float, settle_s: float) -> list[MeasuredWindow]:
    """Two windows at a low rate, and a longer one at a rate that is too high."""
    calm = [run.inject(1000.0, window_s, "observe") for _ in range(2)]
    return [*calm, run.inject(OVERLOAD, settle_s, "observe")]


def saturated_rate(run: Run, settle_s: float) -> float:
    """Records/s that the job takes under overload, once it has settled."""
    run.inject(OVERLOAD, settle_s, "warmup")
    return run.inject(OVERLOAD, settle_s, "warmup").achieved_rate
