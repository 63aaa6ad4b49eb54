"""ODRP: parallelism and placement together, as a mixed-integer program; the baseline of CAPSys section 6.3.

Source: Cardellini, Grassi, Lo Presti, Nardelli, "Optimal operator replication and placement for distributed stream
processing systems" (SIGMETRICS PER 44(4), 2017; CCPE 30(9), 2018), restricted as CAPSys section 6.3 says.

Notation:

| symbol | meaning | shape | unit |
|---|---|---|---|
| e_i | execution time of a record: the inverse of the true processing rate of one task | n | s |
| lambda_i | records into operator i at the target rate, by the selectivities | n | records/s |
| z_ik | 1 where operator i has k tasks, k in K_i | sum of K_i | |
| a_iwkc | 1 where operator i has k tasks, c of them on worker w | | |
| x_wi, p_i, s_w | tasks of i on w, tasks of i, slots of w: x_wi = sum_kc c a_iwkc | (W, n), n, W | |
| f_wi | x_wi / p_i = sum_kc (c / k) a_iwkc | (W, n) | |
| b_ij | 1 where a task of i and one of j are on different workers | E | |
| t_ij | what all tasks of i send to j | E | bytes/s |
| d, N_w | latency of a link between two workers; outbound bandwidth of w | , W | s; bytes/s |
| A_w | availability of worker w, in (0, 1] | W | |
| w_r, w_c, w_t, w_a | weights of response time, resource cost, traffic, availability | 4 | |

    sum_k z_ik = 1                                                                      (1)
    sum_c a_iwkc = z_ik                              for each w                         (2)
    sum_wc c a_iwkc = k z_ik                                                            (3)
    sum_i x_wi <= s_w;  sum_i m_i x_wi <= M_w                                           (4)
    R = max over paths of  sum_i e_i lambda_i / p_i  +  sum_ij d b_ij                   (5)
    C = sum_i p_i                                                                       (6)
    T = sum_ij t_ij (1 - sum_w f_wi f_wj);   sum_ij t_ij f_wi (1 - f_wj) <= N_w         (7)
    log A = sum over workers in use of log A_w                                          (8)

    min F = w_r (R - R_min) / (R_max - R_min) + w_c (C - C_min) / (C_max - C_min) + w_t T / T_max + w_a log A / log A_min

f_wi f_wj is a product of a binary choice and a share, hence exact in a linear program: h_wkc <= a_iwkc and sum_kc h_wkc
<= f_wj give sum_kc (c / k) h_wkc <= f_wi f_wj, reached where traffic is to be little. ODRP writes a binary
variable for each *multiset* of workers and each pair of them on an edge; counts express the same with far fewer variables,
so decision times here are shorter than its own.

Rulings where CAPSys is silent:

- **Response time of an operator.** e_i lambda_i / p_i: the time until the records of one second are done. A queueing
  formula would be infinite where tasks cannot keep up; CAPSys reports plans that cannot, and says that the model has
  no objective to sustain the rate, so there is none here, and no limit of p_i from below but 1.
- **Scales.** R_max: each operator with its fewest tasks and every link crossed; R_min: its most tasks, and none. C by
  the fewest and the most tasks that fit; T_max: everything crosses; A_min: all workers in use. Where all plans are equal
  in an objective it has no weight.
- **Link latency.** d = 1 ms between two workers, 0 within one. One link out of each worker, of its bandwidth `net`; not
  one for each pair.
- **Edges.** ODRP knows no forward edges: every task sends to every task downstream.
- **Weights.** default: a quarter each. latency: response time alone. weighted: 0.85 response time, 0.15 cost. CAPSys does
  not state its hand-tuned weights, only that they "emphasize throughput and resource efficiency"; with these Q3-inf
  gets as many slots as in its Table 3 (26; with 0.8 it gets 22, with 0.9 all 32).
- **Sources.** Exactly one, as CAPSys reports of ODRP; it takes slots like the others.
"""

import math
from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
from pydantic import Field

from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput, SluiceError
from models.placement.baselines.odrp_instance import OdrpInstance
from models.placement.baselines.odrp_objectives import OdrpWeights, Scales, measure, objective, scales_of
from models.placement.baselines.odrp_program import OdrpProgram
from models.placement.kernels.problem import Ints
from models.placement.time_limit import Clock, TimeLimit
from models.plan.parts import Placement
from models.schema import Format, NonNegative, PositiveInt, Ratio

LINK_LATENCY_S: Final = 0.001
GAP: Final = 1e-4
"""Relative gap at which a plan counts as optimal (the default of HiGHS)."""
ROUNDING: Final = 1e-9
OPTIMAL: Final = 0
INFEASIBLE: Final = 2
"""Status codes of scipy.optimize.milp."""


WEIGHTS: Final[Mapping[str, OdrpWeights]] = {
    "default": OdrpWeights(response=0.25, cost=0.25, traffic=0.25, availability=0.25),
    "weighted": OdrpWeights(response=0.85, cost=0.15, traffic=0.0, availability=0.0),
    "latency": OdrpWeights(response=1.0, cost=0.0, traffic=0.0, availability=0.0),
}
"""CAPSys section 6.3's three configurations."""


class OdrpResult(Format):
    """Parallelism and placement with the least F found."""

    status: Literal["optimal", "feasible"] = Field(description="optimal: F is proved least; feasible: time was over.")
    parallelism: dict[str, PositiveInt] = Field(description="p_i, sources included.")
    placement: Placement
    weights: OdrpWeights
    objective: float = Field(description="F of the plan.")
    bound: float = Field(description="Proved: no plan has a smaller F.")
    gap: Ratio = Field(description="F - bound, as a share of F; 0 is optimal.")
    response_s: NonNegative = Field(description="R, seconds.")
    cost_slots: PositiveInt = Field(description="C, slots.")
    traffic: NonNegative = Field(description="T, bytes/s between workers.")
    availability: Ratio = Field(description="A; 1 where all workers are always up.")
    variables: int
    constraints: int
    nodes: int = Field(ge=0, description="Nodes of the branch-and-bound tree.")
    seconds: NonNegative | None = Field(description="By the clock that was passed in; None without one.")


def odrp(
    instance: OdrpInstance,
    cluster: Cluster,
    weights: OdrpWeights = WEIGHTS["default"],
    *,
    link_latency_s: float = LINK_LATENCY_S,
    availability: Mapping[str, float] | None = None,
    clock: Clock | None = None,
    time_limit_s: float | None = None,
) -> OdrpResult:
    """Parallelism and placement with the least F.

    Args:
        availability: A_w by worker; 1 where absent, as CAPSys assumes.
        clock: seconds from any moment; without one there is no time limit, and `seconds` is None.

    Raises:
        Infeasible: no plan fits slots, memory and bandwidth.
        InvalidInput: an availability outside (0, 1].
        SluiceError: the time was over before any plan was found.
    """
    time = TimeLimit(clock, time_limit_s)
    logs = {w: _log_availability(w, a) for w, a in (availability or {}).items()}
    scales = scales_of(instance, cluster, link_latency_s, logs)
    built = _program(instance, cluster, weights, scales, link_latency_s, logs)
    answer = built.program.solve(time_limit_s if clock is not None else None, GAP)
    if answer.status == INFEASIBLE:
        raise Infeasible(
            f"no plan of ODRP fits the {cluster.slots} slots of the cluster with the memory and bandwidth of its workers "
            "(proved); use a larger cluster"
        )
    if answer.x is None:
        raise SluiceError(f"ODRP found no plan ({answer.message}); give a longer time limit, or use another policy")
    counts = built.counts(answer.x)
    measured = measure(instance, cluster, counts, link_latency_s, logs)
    value = objective(weights, scales, measured)
    bound = min(value, float(answer.mip_dual_bound))
    variables, constraints = built.program.size
    return OdrpResult(
        status="optimal" if answer.status == OPTIMAL else "feasible",
        parallelism={name: int(counts[:, i].sum()) for i, name in enumerate(instance.operators)},
        placement=_named(instance, cluster, counts),
        weights=weights,
        objective=value,
        bound=bound,
        gap=_gap(value, bound),
        response_s=measured.response_s,
        cost_slots=measured.slots,
        traffic=measured.traffic,
        availability=math.exp(-measured.unavailability),
        variables=variables,
        constraints=constraints,
        nodes=int(answer.mip_node_count or 0),
        seconds=time.seconds,
    )


def _program(
    instance: OdrpInstance,
    cluster: Cluster,
    weights: OdrpWeights,
    scales: Scales,
    link_latency_s: float,
    logs: Mapping[str, float],
) -> OdrpProgram:
    built = OdrpProgram(instance.choices, instance.work, instance.memory_mb, instance.streams, instance.order, cluster)
    built.break_symmetry(logs)
    built.weigh_response(weights.response, scales, link_latency_s)
    built.weigh_cost(weights.cost, scales.cost_span)
    built.weigh_traffic(weights.traffic, scales.traffic)
    built.weigh_availability(weights.availability, scales.unavailability, logs)
    return built


def _named(instance: OdrpInstance, cluster: Cluster, counts: Ints) -> Placement:
    return {
        worker.name: {instance.operators[i]: int(counts[w, i]) for i in np.flatnonzero(counts[w])}
        for w, worker in enumerate(cluster.workers)
        if counts[w].any()
    }


def _gap(value: float, bound: float) -> float:
    """Share of F that may still be saved; 0 where F itself is next to nothing."""
    return max(0.0, min(1.0, (value - bound) / value)) if value > ROUNDING else 0.0


def _log_availability(worker: str, availability: float) -> float:
    if not 0 < availability <= 1:
        raise InvalidInput(f"0 < availability <= 1 must hold, but {worker!r} has {availability:g}")
    return math.log(availability)
