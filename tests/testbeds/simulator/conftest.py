"""Small jobs whose capacity can be worked out by hand, and a way to measure it."""

from collections.abc import Callable

import pytest

from models.cluster import Cluster
from models.job import Job
from testbeds.protocol import Configuration, MeasuredWindow
from testbeds.simulator import Physics, Simulator


def make_job(*operators: dict, edges: list[tuple], **fields: object) -> Job:
    """A job from operators `{"name", "cpu_s", ...}` and edges `(from, to, partitioning[, share])`."""
    costs = ("cpu_s", "external_wait_s", "state_read_bytes", "state_write_bytes", "bytes_out")
    listed = []
    for operator in operators:
        cost = {"bytes_out": 100.0, **{k: v for k, v in operator.items() if k in costs}}
        rest = {k: v for k, v in operator.items() if k not in costs}
        listed.append({"cost": cost, "figures_from": "made up for a test", **rest})
    joined = [dict(zip(("from", "to", "partitioning", "share"), e, strict=False)) for e in edges]
    base = {"name": "test", "description": "A test.", "figures_from": "made up for a test"}
    return Job.model_validate({**base, **fields, "operators": listed, "edges": joined})


SOURCE = {"name": "source", "kind": "source", "cpu_s": 1e-7}
SINK = {"name": "sink", "kind": "sink", "cpu_s": 1e-7}


@pytest.fixture
def job() -> Callable[..., Job]:
    return make_job


@pytest.fixture
def chain() -> Callable[..., Job]:
    """source -> each given operator -> sink, with the given partitioning into it (rebalance where none is given)."""

    def build(*operators: dict, source: dict | None = None, **fields: object) -> Job:
        names = ["source", *[o["name"] for o in operators], "sink"]
        into = [o.get("into", "rebalance") for o in operators] + ["rebalance"]
        edges = list(zip(names, names[1:], into, strict=False))
        plain = [{k: v for k, v in o.items() if k != "into"} for o in operators]
        return make_job({**SOURCE, **(source or {})}, *plain, SINK, edges=edges, **fields)

    return build


@pytest.fixture
def cluster() -> Callable[..., Cluster]:
    def build(workers: int = 1, slots: int = 8, **limits: float) -> Cluster:
        return Cluster.model_validate({"name": "made-up", "count": workers, "slots": slots, **limits})

    return build


@pytest.fixture
def inject() -> Callable[..., MeasuredWindow]:
    """Deploy, settle, and return the window of an injection."""

    def run(
        job: Job,
        cluster: Cluster | None = None,
        rate: float = 1e7,
        seconds: float = 60.0,
        settle_s: float = 30.0,
        physics: Physics | None = None,
        memory_mb: float = 65536.0,
        seed: int = 1,
        **configuration: object,
    ) -> MeasuredWindow:
        parallelism = {o.name: 1 for o in job.operators} | configuration.pop("parallelism", {})
        testbed = Simulator(cluster, physics=physics or Physics().ideal())
        asked = Configuration(parallelism, memory_mb, **configuration)
        with testbed.deploy(job, asked, run="r", seed=seed) as deployed:
            if settle_s:
                deployed.inject(rate, settle_s, "warmup")
            return deployed.inject(rate, seconds, "observe")

    return run
