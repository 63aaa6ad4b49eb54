"""Replanning a running job: of the plans that cost little more than the best, the one that moves the fewest tasks.

A move is a task that starts on a worker which did not run it; tasks of one operator are interchangeable, and a worker
on which nothing runs is interchangeable with any other of its type. With r_wi the tasks that run, a plan x has

    moves(x) = sum_wi max(0, x_wi - r_wi)

and must cost at most (1 + tolerance) x threshold in each dimension. Three candidates are compared: the best plan with
its workers matched to the running ones (an assignment problem), and two tabu searches, from there and from the plan that
moves nothing. Then a mixed-integer program over patterns (rows of x within the limits) looks for fewer moves: over all
patterns if they are few enough, which proves the number or a bound; else over those near the running placement.
"""

from typing import Final

import numpy as np
from pydantic import Field

from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.placement.cost import (
    SMALLEST,
    TOLERANCE,
    as_array,
    cost_vector,
    costs,
    load_limits,
    worker_limits,
    worker_loads,
)
from models.placement.graph.subtasks import assign_subtasks
from models.placement.kernels.homing import Setting, bring_home
from models.placement.kernels.problem import Bools, Floats, Ints
from models.placement.problem import DIMENSIONS, Problem
from models.placement.replan.program import solve
from models.placement.results import Answer, Subtasks
from models.placement.time_limit import Clock, TimeLimit
from models.plan.parts import CostVector, Placement
from models.schema import NonNegative

COST_TOLERANCE: Final = 0.05
STEPS: Final = 4000
PATIENCE: Final = 800
"""Most steps of a tabu search, and the steps without a better plan after which it ends."""
TIME_LIMIT_S: Final = 10.0


class StablePlacement(Answer):
    """A placement with few moves; `optimal`: proved that no plan within `allowed` moves fewer."""

    placement: Placement
    cost: CostVector
    allowed: CostVector = Field(description="The thresholds, each raised by the tolerance: the largest allowed cost.")
    tolerance: NonNegative = Field(description="Share by which a threshold may be exceeded.")
    moves: int = Field(ge=0, description="Tasks that start on a worker which did not run them.")
    least_moves: int = Field(ge=0, description="Proved: no plan within the allowed cost moves fewer.")
    best_moves: int = Field(ge=0, description="Moves of the best plan, its workers matched to what they run.")
    stay_moves: int | None = Field(description="Moves when every task that can stay does, whatever it costs.")
    stay_cost: CostVector | None = Field(
        description="Cost of that; None if the running tasks no longer fit slots or memory."
    )
    subtasks: Subtasks | None = Field(
        None, description="Which subtasks run where, so that forward pairs meet; None where no edge is forward."
    )


def fewest_moves(
    dataflow: Dataflow,
    cluster: Cluster,
    running: Placement,
    best: Placement,
    thresholds: CostVector,
    *,
    tolerance: float = COST_TOLERANCE,
    seed: int = 0,
    clock: Clock | None = None,
    time_limit_s: float | None = TIME_LIMIT_S,
) -> StablePlacement:
    """The plan within (1 + tolerance) x thresholds that moves the fewest tasks, as far as it can be found.

    Args:
        running: worker -> operator -> tasks that run now; workers and operators that no longer exist are ignored.
        best: a placement within the thresholds, as `tune` gives it.

    Raises:
        InvalidInput: a negative tolerance, or `best` is not within the thresholds.
    """
    if not tolerance >= 0:
        raise InvalidInput(f"the tolerance on the cost must be 0 or more, but got {tolerance}")
    time = TimeLimit(clock, time_limit_s)
    return fewest_moves_in(Problem.of(dataflow, cluster), running, best, thresholds, tolerance, seed, time)


def fewest_moves_in(
    problem: Problem,
    running: Placement,
    best: Placement,
    thresholds: CostVector,
    tolerance: float,
    seed: int,
    time: TimeLimit,
) -> StablePlacement:
    """`fewest_moves` for a problem that is already compiled."""
    allowed = np.minimum(as_array(thresholds) * (1 + tolerance), 1.0)
    now = running_counts(problem, running)
    matched = match_workers(problem, problem.counts(best), now)
    if (costs(problem, matched) > allowed + TOLERANCE).any():
        raise InvalidInput(f"the best placement must be within the thresholds, but it costs {costs(problem, matched)}")
    least = fewest_possible(problem, now)
    stay = let_run(problem, now, load_limits(problem, allowed))
    counts = _search(problem, now, matched, stay, allowed, least, seed)
    if moves_of(counts, now) > least and not time.spent:
        other, bound = solve(problem, now, allowed, counts, time)
        if other is not None and moves_of(other, now) < moves_of(counts, now):
            counts = other
        least = min(max(least, bound), moves_of(counts, now))
    moves = moves_of(counts, now)
    return StablePlacement(
        status="optimal" if moves == least else "feasible",
        bound=None,
        gap=0.0 if moves == least else 1 - least / moves,
        nodes=0,
        seconds=time.seconds,
        placement=problem.placement(counts),
        cost=cost_vector(problem, counts),
        allowed=CostVector(cpu=allowed[0], io=allowed[1], net=allowed[2]),
        tolerance=tolerance,
        moves=moves,
        least_moves=least,
        best_moves=moves_of(matched, now),
        stay_moves=None if stay is None else moves_of(stay, now),
        stay_cost=None if stay is None else cost_vector(problem, stay),
        subtasks=assign_subtasks(problem, counts),
    )


def running_counts(problem: Problem, running: Placement) -> Ints:
    """The running tasks, (W, n); workers and operators that the problem does not have are left out."""
    counts = np.zeros((len(problem.workers), len(problem.operators)), dtype=np.int64)
    worker = {name: w for w, name in enumerate(problem.workers)}
    operator = {name: i for i, name in enumerate(problem.operators)}
    for name, tasks in running.items():
        for task, number in tasks.items():
            if name in worker and task in operator:
                counts[worker[name], operator[task]] = number
    return counts


def moves_of(counts: Ints, running: Ints) -> int:
    """Tasks that start on a worker which did not run them."""
    return int(np.maximum(counts - running, 0).sum())


def fewest_possible(problem: Problem, running: Ints) -> int:
    """A lower bound of the moves: a task can only stay if it runs, is wanted, and has a slot."""
    wanted = np.minimum(running.sum(axis=0), problem.parallelism).sum()
    slots = np.minimum(running.sum(axis=1), problem.slots).sum()
    return int(problem.tasks - min(wanted, slots))


def match_workers(problem: Problem, counts: Ints, running: Ints) -> Ints:
    """The same plan, with workers of a type exchanged so that the most tasks stay where they run."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    matched = np.zeros_like(counts)
    for kind in np.unique(problem.worker_type):
        own = np.flatnonzero(problem.worker_type == kind)
        stays = np.minimum(counts[own][:, None, :], running[own][None, :, :]).sum(axis=2)
        rows, columns = linear_sum_assignment(stays, maximize=True)
        matched[own[columns]] = counts[own[rows]]
    return matched


def let_run(problem: Problem, running: Ints, limits: Floats) -> Ints | None:
    """Keep every task that can stay, (W, n): surplus tasks stop on the most loaded workers, new ones start on the least.

    Args:
        limits: (3,) largest loads of a worker, which may be infinite; workers are ranked by their load relative to them.

    Returns:
        None where memory leaves no place for a task.
    """
    counts = running.copy()
    share = problem.loads[: len(DIMENSIONS)] / np.maximum(problem.most, SMALLEST)[:, None]
    heavy_first = np.argsort(-share.max(axis=0), kind="stable")
    for i in heavy_first:
        for _ in range(int(counts[:, i].sum() - problem.parallelism[i])):
            pressure = np.where(counts[:, i] > 0, _pressure(problem, counts, limits), -np.inf)
            counts[int(np.argmax(pressure)), i] -= 1
    while len(over := np.flatnonzero(~_fits(problem, counts))):
        counts[over[0], np.argmax(np.where(counts[over[0]] > 0, problem.memory_mb, -1.0))] -= 1
    for i in heavy_first:
        for _ in range(int(problem.parallelism[i] - counts[:, i].sum())):
            more = counts.copy()
            more[:, i] += 1
            open_ = _fits(problem, more)
            if not open_.any():
                return None
            counts[int(np.argmin(np.where(open_, _pressure(problem, more, limits), np.inf))), i] += 1
    return counts


def _fits(problem: Problem, counts: Ints) -> Bools:
    """(W,): within slots and memory."""
    memory = counts @ problem.memory_mb <= problem.memory_limit_mb * (1 + TOLERANCE)
    return np.asarray((counts.sum(axis=1) <= problem.slots) & memory)


def _pressure(problem: Problem, counts: Ints, limits: Floats) -> Floats:
    """(W,): how far the loads of a worker lie above (or, below 0, within) the limits, in units of cost; the highest."""
    span = problem.most - problem.least
    limited = np.isfinite(limits) & (span > 0)
    goal = np.where(limited, limits, problem.least)[:, None]
    return np.asarray(((worker_loads(problem, counts) - goal) / np.where(span > 0, span, np.inf)[:, None]).max(axis=0))


def _search(
    problem: Problem, running: Ints, matched: Ints, stay: Ints | None, allowed: Floats, least: int, seed: int
) -> Ints:
    """The best of the matched plan and of the tabu searches that start from it and from the plan that moves nothing."""
    setting = _setting(problem, running, allowed)
    best = matched
    for start in (stay, matched):
        if start is None or moves_of(best, running) <= least:
            continue
        moves, counts = bring_home(setting, start, least, STEPS, PATIENCE, seed)
        within = moves >= 0 and (costs(problem, counts) <= allowed + TOLERANCE).all()
        if within and moves < moves_of(best, running):
            best = counts
    return best


def _setting(problem: Problem, running: Ints, allowed: Floats) -> Setting:
    span = np.where(problem.most > problem.least, problem.most - problem.least, 1.0)
    unit = np.where(np.isfinite(problem.capacity), problem.capacity, 1.0) * np.append(span, 1.0)[:, None]
    return Setting(
        problem=problem.compiled(),
        running=running,
        slots=problem.slots,
        most=worker_limits(problem, load_limits(problem, allowed), TOLERANCE / 2),
        weight=1 / unit,
    )
