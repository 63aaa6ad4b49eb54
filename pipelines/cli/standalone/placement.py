"""`sluice place` and `sluice tune`: the placement models by themselves, on files."""

import math
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from models.cluster import Cluster
from models.errors import InvalidInput, SluiceError
from models.placement import PlacementResult, Tuning, count_plans, place, tune
from models.placement.cost import worker_loads
from models.placement.front import Front, pareto_front
from models.placement.problem import DIMENSIONS, Problem
from models.plan.parts import CostVector, Placement
from pipelines.cli import app
from pipelines.cli.options.standard import JsonOption
from pipelines.cli.output import console, print_json
from pipelines.inputs.graphs import read_graph
from pipelines.inputs.parsing.files import read_as
from pipelines.terminal.tables import table


class PlacementPolicy(StrEnum):
    CAPS = "caps"
    DEFAULT = "default"
    EVENLY = "evenly"
    RANDOM = "random"
    ODRP = "odrp"


GraphArgument = Annotated[
    Path, typer.Argument(metavar="GRAPH", help="Dataflow with the loads of its tasks, or several.")
]
ClusterArgument = Annotated[Path, typer.Argument(metavar="CLUSTER", help="Workers and their slots.")]
SeedOption = Annotated[
    int, typer.Option(min=0, help="Seed of random orders and ties; the same seed gives the same answer.")
]
TimeLimitOption = Annotated[float, typer.Option("--time-limit", metavar="S", help="Stop searching after S seconds.")]


@app.command("place")
def place_command(
    graph: GraphArgument,
    cluster: ClusterArgument,
    policy: Annotated[PlacementPolicy, typer.Option(help="caps balances the loads; the others are baselines.")] = (
        PlacementPolicy.CAPS
    ),
    thresholds: Annotated[
        str | None,
        typer.Option(metavar="cpu=A,io=B,net=C", help="Largest costs allowed, 0 to 1; tuned if absent."),
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Only count the distinct plans (within the thresholds).")] = (
        False
    ),
    seed: SeedOption = 0,
    time_limit: TimeLimitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Choose a worker for each task. With --count, count the plans instead (CAPSys section 4)."""
    problem, given = read_graph(graph), read_as(cluster, Cluster)
    dataflow, workers = problem.dataflow, problem.seen_by_search(given)
    alpha = None if thresholds is None else parse_thresholds(thresholds)
    seconds = _time_limit(time_limit)
    if count:
        problem.refuse_shared_slots("plans are counted")
        plans = count_plans(dataflow, workers, alpha, clock=time.monotonic, time_limit_s=seconds)
        if as_json:
            print_json({"plans": plans})
        else:
            console.print(f"{plans} distinct plans")
        return
    result = place(dataflow, workers, policy.value, alpha, seed=seed, clock=time.monotonic, time_limit_s=seconds)
    if as_json:
        print_json(problem.document(result))
    else:
        _print_result(result, Problem.of(dataflow, workers))
    problem.check_slots(result.placement, given)
    if result.status == "unknown":
        raise SluiceError(
            f"no placement within the thresholds was found in {result.seconds or 0:.1f} s, and none was proved "
            "impossible; the one printed came closest; relax the thresholds, or give a longer --time-limit"
        )


@app.command("tune")
def tune_command(
    graph: GraphArgument,
    cluster: ClusterArgument,
    front: Annotated[
        bool, typer.Option("--front", help="Print the Pareto front: all costs worth choosing from.")
    ] = False,
    step: Annotated[
        float | None,
        typer.Option(
            metavar="D", help="With --front: difference in cost to ignore; default: 0 up to 128 tasks, 0.01 beyond."
        ),
    ] = None,
    seed: SeedOption = 0,
    time_limit: TimeLimitOption = 60.0,
    as_json: JsonOption = False,
) -> None:
    """Find the least thresholds that a placement can meet. The method is CAPSys section 5.2."""
    problem, given = read_graph(graph), read_as(cluster, Cluster)
    dataflow, workers = problem.dataflow, problem.seen_by_search(given)
    if step is not None and not front:
        raise InvalidInput("--step goes with --front; add it, or leave the step out")
    if front:
        problem.refuse_shared_slots("the front is searched")
        seconds = _time_limit(time_limit)
        points = pareto_front(dataflow, workers, step=step, seed=seed, clock=time.monotonic, time_limit_s=seconds)
        if as_json:
            print_json(problem.front_document(points))
        else:
            _print_front(points)
        return
    tuning = tune(dataflow, workers, seed=seed, clock=time.monotonic, time_limit_s=_time_limit(time_limit))
    if as_json:
        print_json(problem.document(tuning))
    else:
        _print_tuning(tuning, Problem.of(dataflow, workers))
    problem.check_slots(tuning.placement, given)


def parse_thresholds(text: str) -> CostVector:
    """`cpu=0.1,io=0.2,net=0.6` as thresholds; a dimension that is left out is not limited.

    Raises:
        InvalidInput: a part that is not `dimension=number`, an unknown or repeated dimension, a number outside 0..1.
    """
    values: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.partition("=")
        name = name.strip()
        if name not in DIMENSIONS or not equals or name in values:
            raise InvalidInput(
                f"thresholds must be cpu=A,io=B,net=C with each dimension at most once, but got {part!r} in {text!r}"
            )
        try:
            values[name] = float(number)
        except ValueError:
            raise InvalidInput(f"the threshold of {name} must be a number, but got {number!r}") from None
        if not 0 <= values[name] <= 1:
            raise InvalidInput(f"0 <= threshold <= 1 must hold, but got {part.strip()!r}; costs lie between 0 and 1")
    return CostVector(cpu=values.get("cpu", 1.0), io=values.get("io", 1.0), net=values.get("net", 1.0))


def _time_limit(seconds: float) -> float:
    if not (seconds > 0 and math.isfinite(seconds)):
        raise InvalidInput(f"--time-limit must be a number of seconds above 0, but got {seconds}")
    return seconds


def _print_result(result: PlacementResult, problem: Problem) -> None:
    console.print(_grid(result.placement, problem))
    costs = table("cost", *DIMENSIONS)
    costs.add_row("placement", *_numbers(result.cost))
    if result.policy == "caps":
        costs.add_row("threshold", *_numbers(result.thresholds))
    console.print(costs)
    _print_left_out(result)
    _print_status(result)


def _print_tuning(tuning: Tuning, problem: Problem) -> None:
    console.print(_grid(tuning.placement, problem))
    costs = table("cost", *DIMENSIONS)
    costs.add_row("least alone", *_numbers(tuning.single))
    costs.add_row("  proved", *("yes" if tuning.single_proved[d] else "no" for d in DIMENSIONS))
    costs.add_row("threshold", *_numbers(tuning.thresholds))
    costs.add_row("placement", *_numbers(tuning.cost))
    console.print(costs)
    console.print(f"common relaxation {tuning.relaxation:.4f} (grid of 1.1: {tuning.grid_relaxation:.4f})")
    _print_left_out(tuning)
    _print_status(tuning)


def _print_front(front: Front) -> None:
    points = table("point", *DIMENSIONS, "status", text=("status",))
    for number, point in enumerate(front.points, start=1):
        points.add_row(str(number), *_numbers(point.cost), point.status)
    console.print(points)
    left = f"; {len(front.open_corners)} boxes of costs not searched completely" if front.open_corners else ""
    console.print(
        f"{front.status} within a step of {front.step:g}, {front.nodes} nodes, {front.seconds or 0:.3f} s{left}"
    )


def _print_left_out(answer: PlacementResult | Tuning) -> None:
    for dimension, worst in answer.left_out.items():
        console.print(
            f"{dimension} is not limited: no placement loads a worker by more than {worst:.1%} of its capacity"
        )


def _print_status(answer: PlacementResult | Tuning) -> None:
    gap = "gap unknown" if answer.gap is None else f"gap {answer.gap:.2%}"
    console.print(f"{answer.status}, {gap}, {answer.nodes} nodes, {answer.seconds or 0:.3f} s")


def _grid(placement: Placement, problem: Problem) -> Table:
    """One row per worker: slots taken, loads as in the cost model, and its tasks."""
    counts = problem.counts(placement)
    loads = worker_loads(problem, counts)
    rows = table("worker", "slots", *(f"{d} load" for d in DIMENSIONS), "tasks", wrap=("tasks",))
    for w, worker in enumerate(problem.workers):
        tasks = ", ".join(f"{name} {count}" for name, count in zip(problem.operators, counts[w], strict=True) if count)
        taken = f"{counts[w].sum()}/{problem.slots[w]}"
        rows.add_row(worker, taken, *(f"{load:.4g}" for load in loads[:, w]), Text(tasks))
    return rows


def _numbers(cost: CostVector) -> tuple[str, str, str]:
    return f"{cost.cpu:.5f}", f"{cost.io:.5f}", f"{cost.net:.5f}"
