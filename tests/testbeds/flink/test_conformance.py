"""What every testbed must fulfil, on a real Flink: one run serves all tests, in windows of a few seconds.

Left out is what takes minutes of real time, or a run that repeats to the bit.
"""

from collections.abc import Iterator

import pytest

from models.cluster import Cluster
from models.job import Job
from testbeds import conformance
from testbeds.flink.testbed import FlinkTestbed
from testbeds.protocol import Configuration, Run, Window

pytestmark = pytest.mark.slow


class TestFlink(conformance.RefusalConformance, conformance.SampleConformance):
    settle_s = 10.0
    window_s = 5.0
    tolerance = 0.05

    @pytest.fixture(scope="class")
    @classmethod
    def testbed(cls) -> Iterator[FlinkTestbed]:
        cluster = Cluster.model_validate({"name": "local", "count": 1, "slots": 4, "cores": 0.5, "memory_mb": 1024})
        with FlinkTestbed(cluster, [1024.0]) as made:
            yield made

    @pytest.fixture(scope="class")
    @classmethod
    def job(cls) -> Job:
        return conformance.small_job()

    @pytest.fixture(scope="class")
    @classmethod
    def configuration(cls) -> Configuration:
        return Configuration(parallelism={"source": 2, "map": 1, "count": 1, "sink": 1}, memory_mb=1024.0)

    @pytest.fixture(scope="class")
    @classmethod
    def run(cls, testbed: FlinkTestbed, job: Job, configuration: Configuration) -> Iterator[Run]:
        with testbed.deploy(job, configuration, run="conformance-1", seed=1) as deployed:
            yield deployed

    @pytest.fixture(scope="class")
    @classmethod
    def windows(cls, run: Run) -> list[Window]:
        return conformance.windows_of(run, cls.window_s, cls.settle_s)
