"""One placement by the policy asked for, and the number of distinct plans."""

from typing import Final

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import Infeasible, InvalidInput, SluiceError
from models.placement.baselines import fill, scatter, spread
from models.placement.budget import Budget, Clock
from models.placement.cost import as_array, cost_vector
from models.placement.feasible import first_feasible
from models.placement.odrp import odrp
from models.placement.odrp_instance import OdrpInstance
from models.placement.problem import Ints, Problem
from models.placement.results import PlacementResult, Policy, Status
from models.placement.search import NO_THRESHOLDS, Verdict, count_within
from models.placement.subtasks import assign_subtasks
from models.placement.tuning import TIME_LIMIT_S, any_plan, tune
from models.plan import CostVector

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
    threads: int = 1,
) -> PlacementResult:
    """Choose a worker for every task.

    Args:
        policy: `caps` searches within the thresholds, and tunes them first if there are none; `default` and `evenly`
            are Flink's and `random` deals tasks to slots, which look at no load; `odrp` minimises its own objectives for
            a query with one source. None of these takes thresholds.
        thresholds: alpha, the largest cost wanted in each dimension (Eq. 9); 1 excludes nothing.
        seed: of the random order of tasks in Flink's policies, and of ties in the search.
        clock: seconds from any moment; without one there is no time limit, and `seconds` is None.
        threads: for a long search of the tree within given thresholds; which plan is met first then depends on the
            machine. Tuning takes one, so that the same seed gives the same answer.

    Returns:
        the placement. Its status is `unknown` when no plan within the thresholds was found nor excluded; then it is
        the one that came closest.

    Raises:
        Infeasible: fewer slots than tasks, memory that fits nowhere, or proved that no plan meets the thresholds.
        InvalidInput: thresholds for a policy that takes none; several sources with `odrp`.
    """
    budget = Budget(clock, time_limit_s)
    if policy == "caps" and thresholds is None:
        return _tuned(dataflow, cluster, seed, clock, time_limit_s)
    problem = Problem.of(dataflow, cluster)
    if policy == "caps" and thresholds is not None:
        counts, status = _within(problem, thresholds, budget, seed, threads)
        return _result(problem, counts, policy, thresholds, status, 0.0 if status == "feasible" else None, budget)
    if thresholds is not None:
        raise InvalidInput(f"thresholds go with the policy 'caps', but the policy is {policy!r}; leave them out")
    if policy == "odrp":
        return _by_odrp(problem, dataflow, cluster, budget)
    counts = {"default": fill, "evenly": spread, "random": scatter}[policy](problem, seed)
    return _result(problem, counts, policy, ANYTHING, "feasible", None, budget)


def count_plans(
    dataflow: Dataflow,
    cluster: Cluster,
    thresholds: CostVector | None = None,
    *,
    clock: Clock | None = None,
    time_limit_s: float | None = None,
    threads: int = 1,
) -> int:
    """How many distinct plans there are, within the thresholds if given.

    A plan is a multiset of workers, each with a number of tasks of every operator; workers are interchangeable within
    their type. Walks through every plan: some millions a second and thread.

    Raises:
        Infeasible: fewer slots than tasks, or a task that no worker has the memory for.
        SluiceError: the time limit came before the end.
    """
    budget = Budget(clock, time_limit_s)
    problem = Problem.of(dataflow, cluster)
    alpha = NO_THRESHOLDS if thresholds is None else as_array(thresholds)
    plans, complete = count_within(problem, alpha, budget, threads=threads)
    if not complete:
        raise SluiceError(
            f"counting did not end within {time_limit_s:g} s; there are at least {plans} plans; allow more time"
        )
    return plans


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


def _by_odrp(problem: Problem, dataflow: Dataflow, cluster: Cluster, budget: Budget) -> PlacementResult:
    """ODRP's placement of the given tasks; gap and proof are those of its own objective."""
    instance = OdrpInstance.of_dataflow(dataflow, cluster)
    found = odrp(instance, cluster, clock=budget.clock, time_limit_s=budget.time_limit_s)
    budget.nodes += found.nodes
    return _result(problem, problem.counts(found.placement), "odrp", ANYTHING, found.status, found.gap, budget)


def _within(problem: Problem, thresholds: CostVector, budget: Budget, seed: int, threads: int) -> tuple[Ints, Status]:
    found = first_feasible(problem, as_array(thresholds), budget, seed, threads=threads)
    if found.verdict is Verdict.INFEASIBLE or found.counts is None:
        any_plan(problem, budget, seed)  # where memory alone excludes every plan, say so instead
        raise Infeasible(
            f"no placement meets the thresholds cpu={thresholds.cpu:g}, io={thresholds.io:g}, net={thresholds.net:g} "
            "(proved); relax them, or leave them out to have them tuned"
        )
    return found.counts, "feasible" if found.verdict is Verdict.FEASIBLE else "unknown"


def _result(
    problem: Problem,
    counts: Ints,
    policy: Policy,
    thresholds: CostVector,
    status: Status,
    gap: float | None,
    budget: Budget,
) -> PlacementResult:
    return PlacementResult(
        policy=policy,
        placement=problem.placement(counts),
        cost=cost_vector(problem, counts),
        thresholds=thresholds,
        status=status,
        bound=None,
        gap=gap,
        nodes=budget.nodes,
        seconds=budget.seconds,
        subtasks=assign_subtasks(problem, counts),
    )
