"""The subject of a report: a plan with everything it was made from."""

from dataclasses import dataclass

from models.capacity.surrogates import Dataset, Surrogate
from models.cluster import Cluster
from models.job import Job
from models.plan import Plan
from models.planning.parallelism import Scaling
from pipelines.measuring.exploration_record import ExplorationRecord


@dataclass(frozen=True)
class ReportSubject:
    """A plan and its inputs."""

    plan: Plan
    job: Job
    cluster: Cluster
    scaling: Scaling
    exploration: ExplorationRecord
    surrogate: Surrogate
    previous: Plan | None = None
    """The version that the plan replaces."""

    @property
    def dataset(self) -> Dataset:
        return Dataset.of(self.exploration.observations)
