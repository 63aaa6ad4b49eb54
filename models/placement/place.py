"""A placement by the requested policy, and the number of distinct plans."""

from typing import Final

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import Infeasible, InvalidInput
from models.placement.baselines.flink import fill, scatter, spread
from models.placement.baselines.odrp import odrp
from models.placement.baselines.odrp_instance import OdrpInstance
from models.placement.cost import as_array, cost_vector
from models.placement.exact.counting import count_within
from models.placement.feasible import first_feasible
from models.placement.graph.subtasks import assign_subtasks
from models.placement.kernels.problem import Ints
from models.placement.problem import Problem
from models.placement.results import PlacementResult, Policy, Status
from models.placement.search.tree import NO_THRESHOLDS, Feasibility
from models.placement.time_limit import Clock, TimeLimit
from models.placement.tuning import TIME_LIMIT_S, any_plan, tune
from models.plan.parts import CostVector

ANYTHING: Final = CostVector(cpu=1.0, io=1.0, net=1.0)
"""Costs are at most 1, so these thresholds exclude nothing."""


def place(
    dataflow: Dataflow,
    cluster: Cluster,
    policy: Policy = "caps",
    thresholds: CostVector | None = None,
    seed: int = 0,
    *,
    clock: Clock | None = None,
    time_limit_s: float | None = TIME_LIMIT_S,
) -> PlacementResult:
    """Choose a worker for every task.

    Args:
        policy: `caps` searches within the thresholds, and tunes them first if there are none; `default` and `evenly`
            are Flink's and `random` deals tasks to slots, which look at no load; `odrp` minimises its own objectives for
            a query with one source. None of these takes thresholds.
        thresholds: alpha, the largest cost wanted in each dimension (Eq. 9); 1 excludes nothing.
        seed: of the random order of tasks in Flink's policies, and of ties in the search.
        clock: seconds from any moment; without one there is no time limit, and `seconds` is None.

    Returns:
        the placement. Its status is `unknown` if a plan within the thresholds was neither found nor excluded; it is then
        the one that came closest.

    Raises:
        Infeasible: fewer slots than tasks, memory that fits nowhere, or proved that no plan meets the thresholds.
        InvalidInput: thresholds for a policy that takes none; several sources with `odrp`.
    """
    time = TimeLimit(clock, time_limit_s)
    if policy == "caps" and thresholds is None:
        return _tuned(dataflow, cluster, seed, clock, time_limit_s)
    problem = Problem.of(dataflow, cluster)
    if policy == "caps" and thresholds is not None:
        counts, status = _within(problem, thresholds, time, seed)
        return _result(problem, counts, policy, thresholds, status, 0.0 if status == "feasible" else None, time)
    if thresholds is not None:
        raise InvalidInput(f"thresholds go with the policy 'caps', but the policy is {policy!r}; leave them out")
    if policy == "odrp":
        return _by_odrp(problem, dataflow, cluster, time)
    counts = {"default": fill, "evenly": spread, "random": scatter}[policy](problem, seed)
    return _result(problem, counts, policy, ANYTHING, "feasible", None, time)


def count_plans(
    dataflow: Dataflow,
    cluster: Cluster,
    thresholds: CostVector | None = None,
    *,
    clock: Clock | None = None,
    time_limit_s: float | None = None,
) -> int:
    """The number of distinct plans, within the thresholds if given.

    A plan is a multiset of workers, each with a number of tasks of every operator; workers are interchangeable within
    their type.

    Raises:
        Infeasible: fewer slots than tasks, or a task that no worker has the memory for.
        SluiceError: there are too many plans even to count, or the time limit was reached.
    """
    time = TimeLimit(clock, time_limit_s)
    problem = Problem.of(dataflow, cluster)
    alpha = NO_THRESHOLDS if thresholds is None else as_array(thresholds)
    return count_within(problem, alpha, time)


def _tuned(
    dataflow: Dataflow, cluster: Cluster, seed: int, clock: Clock | None, time_limit_s: float | None
) -> PlacementResult:
    tuning = tune(dataflow, cluster, seed=seed, clock=clock, time_limit_s=time_limit_s)
    return PlacementResult(
        policy="caps",
        placement=tuning.placement,
        cost=tuning.cost,
        thresholds=tuning.thresholds,
        left_out=tuning.left_out,
        status=tuning.status,
        bound=tuning.bound,
        gap=tuning.gap,
        nodes=tuning.nodes,
        seconds=tuning.seconds,
        subtasks=tuning.subtasks,
    )


def _by_odrp(problem: Problem, dataflow: Dataflow, cluster: Cluster, time: TimeLimit) -> PlacementResult:
    """ODRP's placement of the given tasks; gap and proof are those of its own objective."""
    instance = OdrpInstance.of_dataflow(dataflow, cluster)
    found = odrp(instance, cluster, clock=time.clock, time_limit_s=time.time_limit_s)
    time.nodes += found.nodes
    return _result(problem, problem.counts(found.placement), "odrp", ANYTHING, found.status, found.gap, time)


def _within(problem: Problem, thresholds: CostVector, time: TimeLimit, seed: int) -> tuple[Ints, Status]:
    found = first_feasible(problem, as_array(thresholds), time, seed)
    if found.verdict is Feasibility.INFEASIBLE or found.counts is None:
        any_plan(problem, time, seed)  # raises the clearer error where memory alone excludes every plan
        raise Infeasible(
            f"no placement meets the thresholds cpu={thresholds.cpu:g}, io={thresholds.io:g}, net={thresholds.net:g} "
            "(proved); relax them, or leave them out to have them tuned"
        )
    return found.counts, "feasible" if found.verdict is Feasibility.FEASIBLE else "unknown"


def _result(
    problem: Problem,
    counts: Ints,
    policy: Policy,
    thresholds: CostVector,
    status: Status,
    gap: float | None,
    time: TimeLimit,
) -> PlacementResult:
    return PlacementResult(
        policy=policy,
        placement=problem.placement(counts),
        cost=cost_vector(problem, counts),
        thresholds=thresholds,
        status=status,
        bound=None,
        gap=gap,
        nodes=time.nodes,
        seconds=time.seconds,
        subtasks=assign_subtasks(problem, counts),
    )
