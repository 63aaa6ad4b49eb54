"""The job and the windows with which a real Flink is held to the conformance suites."""

from collections.abc import Iterator

import pytest

from models.capacity.mst import MstSettings
from models.job import Job
from testbeds.protocol import Configuration, MeasuredWindow, Run, Testbed
from testbeds.suite import OVERLOAD, small_job, windows_of

SLOWER = 10.0
"""Factor on the small job's costs, which keeps its capacity far below that of this machine."""


class OnFlink:
    """The job, and how long things take where seconds are real."""

    settle_s = 5.0
    window_s = 5.0
    catch_up_s = 20.0
    tolerance = 0.05
    mst = MstSettings(
        warmup_s=15.0,
        warmup_rate=OVERLOAD,
        cooldown_s=5.0,
        ramp_s=5.0,
        observe_s=5.0,
        iterations=7,
        sensitivity=0.05,
        bracket=0.3,
    )

    @pytest.fixture(scope="class")
    @classmethod
    def job(cls) -> Job:
        """With few keys, so that all of them are seen within seconds."""
        small = small_job()
        operators = []
        for operator in small.operators:
            dearer = operator.cost.model_copy(update={"cpu_s": SLOWER * operator.cost.cpu_s})
            keys = None if operator.keys is None else operator.keys.model_copy(update={"distinct": 1000})
            operators.append(operator.model_copy(update={"cost": dearer, "keys": keys}))
        return small.model_copy(update={"operators": tuple(operators)})

    @pytest.fixture(scope="class")
    @classmethod
    def configuration(cls) -> Configuration:
        return Configuration(parallelism={"source": 2, "map": 1, "count": 1, "sink": 1}, memory_mb=1024.0)


class OneRun:
    """One run for all tests of a class."""

    settle_s: float
    window_s: float

    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, testbed: Testbed, job: Job, configuration: Configuration) -> Iterator[Run]:
        with testbed.deploy(job, configuration, run="conformance-1", seed=1) as deployed:
            yield deployed

    @pytest.fixture(scope="class")
    @classmethod
    def windows(cls, run: Run) -> list[MeasuredWindow]:
        return windows_of(run, cls.window_s, cls.settle_s)
