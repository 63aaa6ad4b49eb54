"""A small job and cluster, and policies whose decisions are known in advance."""

from collections.abc import Callable
from pathlib import Path

import pytest

from models.cluster import Cluster
from models.job import Job
from models.scaling.policy import Decision, Facts, Recommendation
from models.scaling.rates import Rates
from pipelines.arena.evaluation import Evaluation, evaluate
from pipelines.arena.replays.cell import Cell
from pipelines.arena.replays.workloads import Workload
from pipelines.arena.request import EvaluationRequest
from pipelines.store.workspace import Workspace

FIGURES = {"figures_from": "made up"}


@pytest.fixture(scope="session")
def job() -> Job:
    """A source of 10 us, a map of 100 us and a sink of 10 us a record: one task of the map does 10 000 records/s."""
    return Job.model_validate(
        {
            "name": "chain",
            "description": "A map.",
            "operators": [
                {"name": "source", "kind": "source", "cost": {"cpu_s": 1e-5, "bytes_out": 100}, **FIGURES},
                {"name": "map", "cost": {"cpu_s": 1e-4, "bytes_out": 100}, **FIGURES},
                {"name": "sink", "kind": "sink", "cost": {"cpu_s": 1e-5}, "selectivity": 0, **FIGURES},
            ],
            "edges": [
                {"from": "source", "to": "map", "partitioning": "rebalance"},
                {"from": "map", "to": "sink", "partitioning": "rebalance"},
            ],
            **FIGURES,
        }
    )


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    return Cluster.model_validate({"name": "ten", "count": 10, "slots": 1, "cores": 1, "memory_mb": 4096})


@pytest.fixture(scope="session")
def cell(job: Job, cluster: Cluster) -> Callable[..., Cell]:
    """A cell of four minutes, the last two of which need three times the tasks."""

    def make(policy: str = "ds2", **given: object) -> Cell:
        workload = Workload(name="jump", rates=(8000, 8000, 24000, 24000))
        return Cell.model_validate(
            {"job": job, "cluster": cluster, "workload": workload, "policy": policy, "burn_in_s": 0, **given}
        )

    return make


class Scripted:
    """A policy that recommends given decisions at given times, and remembers the facts."""

    name = "scripted"

    def __init__(
        self, interval_s: float, script: dict[float, dict[str, int]], memory_mb: dict[str, float] | None = None
    ) -> None:
        self._interval_s, self._script, self._memory_mb = interval_s, script, memory_mb or {}
        self.seen: list[Facts] = []

    @property
    def interval_s(self) -> float:
        return self._interval_s

    def decide(self, rates: Rates) -> Decision:
        raise AssertionError("a replay asks a policy to observe")

    def observe(self, facts: Facts) -> Recommendation:
        self.seen.append(facts)
        tasks = self._script.get(facts.time_s)
        if tasks is None:
            return Recommendation(None, "it is not time")
        wanted = Decision(parallelism=tasks, exact={}, memory_mb=self._memory_mb, reasons={})
        return Recommendation(wanted, f"{facts.time_s:g} s")


@pytest.fixture(scope="session")
def scripted() -> type[Scripted]:
    return Scripted


@pytest.fixture(scope="session")
def request_of() -> Callable[..., EvaluationRequest]:
    """Makes requests of six minutes."""

    def make(**given: object) -> EvaluationRequest:
        short = {"jobs": ["nexmark-q1"], "workloads": ["cosine"], "policies": ["ds2", "hpa-cpu"], "minutes": 6}
        short |= {"burn_in_minutes": 0}
        return EvaluationRequest.model_validate(short | given)

    return make


@pytest.fixture(scope="session")
def asked(request_of: Callable[..., EvaluationRequest]) -> EvaluationRequest:
    return request_of(workloads=["cosine", "random"], seeds=2)


@pytest.fixture(scope="session")
def kept_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the workspace that `evaluated` left its replays in."""
    return tmp_path_factory.mktemp("evaluated")


@pytest.fixture(scope="session")
def evaluated(asked: EvaluationRequest, kept_in: Path) -> Evaluation:
    return evaluate(asked, Workspace(kept_in), processes=1)
