"""The subject of a report: a plan with everything it was made from."""

from dataclasses import dataclass

from models.capacity.growth.capacity_model import CapacityModel
from models.cluster import Cluster
from models.job import Job
from models.plan.content import Plan
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
    capacity: CapacityModel
    previous: Plan | None = None
    """The version that the plan replaces."""
