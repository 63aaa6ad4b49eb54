"""Stable replans: small cases by hand, and all plans of small instances."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

from known_answers.drawn_instances import draw_edges, draw_operators, instance_of
from known_answers.every_plan import enumerate_plans
from models.cluster import Cluster
from models.dataflow import Dataflow
from models.errors import InvalidInput
from models.placement import tune
from models.placement.cost import as_array, costs
from models.placement.problem import Problem
from models.placement.replan import program
from models.placement.replan.moves import StablePlacement, fewest_moves, let_run, match_workers, running_counts
from models.placement.time_limit import TimeLimit
from models.plan.parts import CostVector, Placement

ANYTHING = CostVector(cpu=1, io=1, net=1)


def after(dataflow: Dataflow, cluster: Cluster, running: Placement, **options) -> StablePlacement:
    """The stable placement after tuning, with the thresholds of the tuning."""
    tuning = tune(dataflow, cluster)
    return fewest_moves(dataflow, cluster, running, tuning.placement, tuning.thresholds, **options)


def test_what_is_balanced_stays(chain, equal_workers):
    running = {"tm-1": {"a": 1, "b": 1}, "tm-2": {"a": 1, "b": 1}}
    stable = after(chain(2, 2), equal_workers(2, 2), running)
    assert stable.placement == running
    assert (stable.status, stable.moves, stable.least_moves, stable.gap) == ("optimal", 0, 0, 0)
    assert stable.stay_cost == stable.cost


def test_one_swap_where_both_tasks_of_an_operator_share_a_worker(chain, equal_workers):
    # Two a (cpu 1) and two b (cpu 0): balanced is one of each on both, so one a and one b change places.
    dataflow = chain(2, 2, cpu=[1.0, 0.0], io=[0.0, 0.0], net=[0.0, 0.0])
    stable = after(dataflow, equal_workers(2, 2), {"tm-1": {"a": 2}, "tm-2": {"b": 2}})
    assert (stable.moves, stable.least_moves, stable.status) == (2, 2, "optimal")
    assert (stable.stay_moves, stable.stay_cost) == (0, CostVector(cpu=1, io=0, net=0))
    assert stable.cost == CostVector(cpu=0, io=0, net=0)


def test_the_tolerance_lets_tasks_stay(chain, equal_workers):
    # Two and four tasks run where three and three are even.
    dataflow = chain(6, cpu=[1.0], io=[0.0], net=[0.0])
    cluster, running = equal_workers(2, 5), {"tm-1": {"a": 2}, "tm-2": {"a": 4}}
    placed = {"tm-1": {"a": 3}, "tm-2": {"a": 3}}
    strict = CostVector(cpu=0.4, io=1, net=1)
    # L_min = 3, L_max = 5: four tasks on one worker cost (4 - 3) / (5 - 3) = 0.5.
    assert fewest_moves(dataflow, cluster, running, placed, strict, tolerance=0.05).moves == 1
    loose = fewest_moves(dataflow, cluster, running, placed, strict, tolerance=0.25)
    assert (loose.moves, loose.cost.cpu, loose.allowed.cpu) == (0, 0.5, 0.5)


def test_a_new_task_is_the_only_one_that_starts(chain, equal_workers):
    dataflow = chain(3, 2, net=[0.0, 0.0], io=[0.0, 0.0])
    running = {"tm-1": {"a": 1, "b": 1}, "tm-2": {"a": 1, "b": 1}}
    stable = after(dataflow, equal_workers(2, 3), running)
    assert (stable.moves, stable.least_moves, stable.stay_moves) == (1, 1, 1)
    assert sum(tasks["a"] for tasks in stable.placement.values()) == 3


def test_too_many_tasks_stop_where_most_runs(chain, equal_workers):
    dataflow = chain(2, cpu=[1.0], io=[0.0], net=[0.0])
    stable = after(dataflow, equal_workers(3, 4), {"tm-1": {"a": 3}, "tm-2": {"a": 1}})
    assert stable.placement == {"tm-1": {"a": 1}, "tm-2": {"a": 1}}
    assert (stable.moves, stable.status) == (0, "optimal")


def test_workers_are_matched_within_their_type():
    dataflow = Dataflow.model_validate({"operators": [{"name": "a", "parallelism": 4, "cpu": 1, "io": 0, "net": 0}]})
    workers = [{"name": "x", "slots": 3}, {"name": "y", "slots": 3}, {"name": "z", "slots": 4}]
    p = Problem.of(dataflow, Cluster.model_validate({"workers": workers}))
    running = running_counts(p, {"y": {"a": 3}, "z": {"a": 1}, "gone": {"a": 7}})
    assert running.tolist() == [[0], [3], [1]]
    matched = match_workers(p, np.array([[3], [0], [1]]), running)
    assert matched.tolist() == [[0], [3], [1]]
    # z holds more than x and y can, so nothing goes there that was not planned for it.
    assert match_workers(p, np.array([[0], [0], [4]]), running).tolist() == [[0], [0], [4]]


def test_memory_can_keep_tasks_from_running_on(chain, equal_workers):
    p = Problem.of(chain(4, memory_mb=[300.0]), equal_workers(2, 4, memory_mb=700))
    assert let_run(p, np.array([[4], [0]]), np.ones(3)).tolist() == [[2], [2]]  # type: ignore[union-attr]
    # The task of 600 fits only if both of 300 share a worker, but each runs on its own.
    p = Problem.of(chain(2, 1, memory_mb=[300.0, 600.0]), equal_workers(2, 4, memory_mb=700))
    assert let_run(p, np.array([[1, 0], [1, 0]]), np.ones(3)) is None
    placed = {"tm-1": {"a": 2}, "tm-2": {"b": 1}}
    dataflow, cluster = chain(2, 1, memory_mb=[300.0, 600.0]), equal_workers(2, 4, memory_mb=700)
    stable = fewest_moves(dataflow, cluster, {"tm-1": {"a": 1}, "tm-2": {"a": 1}}, placed, ANYTHING)
    assert (stable.stay_cost, stable.stay_moves, stable.moves, stable.least_moves) == (None, None, 2, 2)


@st.composite
def replans(draw: st.DrawFn) -> tuple[Dataflow, Cluster, Placement]:
    operators = draw_operators(draw, draw(st.integers(1, 3)))
    edges = draw_edges(draw, len(operators), "hash")
    tasks = sum(o["parallelism"] for o in operators)
    workers = [{"name": f"w{i}", "slots": draw(st.sampled_from([2, 3])), "cores": 2} for i in range(3)]
    workers.append({"name": "rest", "slots": tasks, "cores": 4})
    running: Placement = {}
    for w in workers:
        row = {o["name"]: draw(st.integers(0, 2)) for o in operators}
        running[w["name"]] = {name: number for name, number in row.items() if number}
    return *instance_of(operators, edges, workers), running


@pytest.mark.slow
@given(replans(), st.sampled_from([0.0, 0.05, 0.5]))
def test_no_plan_of_a_small_instance_moves_fewer(case: tuple[Dataflow, Cluster, Placement], tolerance: float):
    dataflow, cluster, running = case
    p = Problem.of(dataflow, cluster)
    stable = after(dataflow, cluster, running, tolerance=tolerance)
    allowed = np.minimum(1.0, as_array(tune(dataflow, cluster).thresholds) * (1 + tolerance))
    assert as_array(stable.allowed) == pytest.approx(allowed)
    assert (as_array(stable.cost) <= allowed + 1e-8).all()
    assert as_array(stable.cost) == pytest.approx(costs(p, p.counts(stable.placement)))
    now = running_counts(p, running)
    assert stable.moves == np.maximum(p.counts(stable.placement) - now, 0).sum() <= stable.best_moves
    fewest = stable.best_moves
    for plans in enumerate_plans(p):
        for plan in plans[(costs(p, plans) <= allowed + 1e-9).all(axis=1)]:
            fewest = min(fewest, int(np.maximum(match_workers(p, plan, now) - now, 0).sum()))
    assert (stable.moves, stable.least_moves, stable.status) == (fewest, fewest, "optimal")


@pytest.mark.slow
def test_a_large_replan_moves_little(q2_scaled):
    (before, _), (dataflow, cluster) = q2_scaled(16, 16, 200), q2_scaled(16, 16, 240)
    running = tune(before, cluster).placement
    stable = after(dataflow, cluster, running)
    assert stable.least_moves == 40  # tasks that are new
    assert stable.least_moves <= stable.moves <= stable.best_moves
    assert stable.gap == pytest.approx(1 - stable.least_moves / stable.moves)
    assert (as_array(stable.cost) <= as_array(stable.allowed) + 1e-9).all()
    assert stable == after(dataflow, cluster, running)


def test_with_too_many_patterns_those_near_what_runs_are_used(q2_scaled, monkeypatch):
    (before, _), (dataflow, cluster) = q2_scaled(4, 4, 12), q2_scaled(4, 4)
    running = tune(before, cluster).placement
    exact = after(dataflow, cluster, running)
    monkeypatch.setattr(program, "MOST_PATTERNS", 10)
    p = Problem.of(dataflow, cluster)
    now, known = running_counts(p, running), p.counts(tune(dataflow, cluster).placement)
    counts, bound = program.solve(p, now, as_array(exact.allowed), known, TimeLimit())
    assert bound == 0  # nothing is proved
    assert np.maximum(counts - now, 0).sum() == exact.moves == exact.least_moves
    assert (costs(p, counts) <= as_array(exact.allowed) + 1e-9).all()
    monkeypatch.setattr(program, "MOST_NEARBY", 10)
    assert program.solve(p, now, as_array(exact.allowed), known, TimeLimit()) == (None, 0)


def test_a_large_program_is_not_presolved(q2_scaled, monkeypatch):
    """HiGHS presolves 20,000 patterns for minutes and in gigabytes, and does not look at its time limit meanwhile."""
    (before, _), (dataflow, cluster) = q2_scaled(4, 4, 12), q2_scaled(4, 4)
    running = tune(before, cluster).placement
    exact = after(dataflow, cluster, running)
    p = Problem.of(dataflow, cluster)
    now, known = running_counts(p, running), p.counts(tune(dataflow, cluster).placement)
    presolved = []
    milp = scipy.optimize.milp

    def spy(*args: Any, **options: Any) -> Any:
        presolved.append(options["options"]["presolve"])
        return milp(*args, **options)

    monkeypatch.setattr(scipy.optimize, "milp", spy)
    answers = [program.solve(p, now, as_array(exact.allowed), known, TimeLimit())]
    monkeypatch.setattr(program, "MOST_PRESOLVED", 10)
    answers.append(program.solve(p, now, as_array(exact.allowed), known, TimeLimit()))
    assert presolved == [True, False]
    assert [bound for _, bound in answers] == [exact.moves] * 2
    assert [np.maximum(counts - now, 0).sum() for counts, _ in answers] == [exact.moves] * 2


@pytest.mark.parametrize(
    ("tolerance", "cpu", "sentence"), [(-0.1, 1.0, "tolerance"), (0.0, 0.1, "must be within the thresholds")]
)
def test_what_could_not_work_is_refused(chain, equal_workers, tolerance, cpu, sentence):
    best = {"tm-1": {"a": 2}}
    thresholds = CostVector(cpu=cpu, io=1, net=1)
    with pytest.raises(InvalidInput, match=sentence):
        fewest_moves(chain(2), equal_workers(2, 2), {}, best, thresholds, tolerance=tolerance)
