"""The four objectives of ODRP for a given plan, and their scales; Eq. 5-8 of `odrp`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import Field

from models.cluster import Cluster
from models.errors import Infeasible
from models.placement.baselines.odrp_instance import OdrpInstance
from models.placement.kernels.problem import Ints
from models.schema import Format, NonNegative

EQUAL: Final = 1e-12
"""Values of an objective that differ by no more than this share of the largest are equal."""


class OdrpWeights(Format):
    """How much each objective counts in F."""

    response: NonNegative = Field(description="w_r")
    cost: NonNegative = Field(description="w_c")
    traffic: NonNegative = Field(description="w_t")
    availability: NonNegative = Field(description="w_a")


@dataclass(frozen=True)
class Scales:
    """The scales of the objectives: the largest value of each, and the smallest response time."""

    response: tuple[float, float]
    cost: tuple[float, float]
    traffic: float
    unavailability: float

    @property
    def response_span(self) -> float:
        """R_max - R_min in seconds; 0 where all plans are equal in it."""
        least, most = self.response
        return most - least if most - least > EQUAL * most else 0.0

    @property
    def cost_span(self) -> float:
        """C_max - C_min in slots."""
        return self.cost[1] - self.cost[0]


@dataclass(frozen=True)
class ObjectiveValues:
    """The four objectives of one plan."""

    response_s: float
    slots: int
    traffic: float
    unavailability: float
    """-log A."""


def measure(
    instance: OdrpInstance, cluster: Cluster, counts: Ints, link_latency_s: float, log_availability: Mapping[str, float]
) -> ObjectiveValues:
    """R, C, T and -log A of the plan `counts` (W, n), by Eq. 5-8."""
    p = counts.sum(axis=0)
    share, used = counts / p, counts > 0
    done = [instance.work[i] / int(p[i]) for i in range(len(p))]
    arrival = [0.0] * len(p)
    traffic = 0.0
    for j in instance.order:
        for s in instance.streams:
            if s.downstream == j:
                together = bool((used[:, s.upstream] | used[:, j]).sum() == 1)
                arrival[j] = max(arrival[j], done[s.upstream] + (0.0 if together else link_latency_s))
                traffic += s.bytes_per_s * (1.0 - float(share[:, s.upstream] @ share[:, j]))
        done[j] += arrival[j]
    active = (worker.name for worker, tasks in zip(cluster.workers, counts, strict=True) if tasks.any())
    lost = -sum(log_availability.get(name, 0.0) for name in active)
    return ObjectiveValues(max(done), int(p.sum()), max(traffic, 0.0), lost)


def objective(weights: OdrpWeights, scales: Scales, measured: ObjectiveValues) -> float:
    """F."""
    return (
        weights.response * _share(measured.response_s - scales.response[0], scales.response_span)
        + weights.cost * _share(measured.slots - scales.cost[0], scales.cost_span)
        + weights.traffic * _share(measured.traffic, scales.traffic)
        + weights.availability * _share(measured.unavailability, scales.unavailability)
    )


def _share(value: float, span: float) -> float:
    """A value as a share of the span of its objective, whatever its unit; 0 where all plans are equal in it."""
    return value / span if span > 0 else 0.0


def scales_of(
    instance: OdrpInstance, cluster: Cluster, link_latency_s: float, log_availability: Mapping[str, float]
) -> Scales:
    fewest = sum(own[0] for own in instance.choices)
    if fewest > cluster.slots:
        raise Infeasible(
            f"{fewest} tasks need as many slots, but the cluster has {cluster.slots}; add workers or slots, or lower the "
            "parallelism"
        )
    most = min(cluster.slots, sum(own[-1] for own in instance.choices))
    return Scales(
        response=(
            _longest(instance, [own[-1] for own in instance.choices], 0.0),
            _longest(instance, [own[0] for own in instance.choices], link_latency_s),
        ),
        cost=(float(fewest), float(most)),
        traffic=sum(s.bytes_per_s for s in instance.streams),
        unavailability=-sum(log_availability.get(worker.name, 0.0) for worker in cluster.workers),
    )


def _longest(instance: OdrpInstance, tasks: Sequence[int], link_latency_s: float) -> float:
    """R where every link is crossed at `link_latency_s`."""
    done = [work / p for work, p in zip(instance.work, tasks, strict=True)]
    for j in instance.order:
        done[j] += max((done[s.upstream] + link_latency_s for s in instance.streams if s.downstream == j), default=0.0)
    return max(done)
