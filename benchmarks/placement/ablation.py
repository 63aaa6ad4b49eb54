"""The contribution of each engine of the placement: answers, proofs and time with each of them switched off.

    python -m benchmarks.placement.ablation [--random 200] [--time-limit 5] [--json FILE]

Over the catalogue, the published profiles and random instances: thresholds are tuned, a plan is searched within nine tenths
of them (often there is none) and within them, and a placement by Flink's spreading policy is replanned with the fewest
moves. A question counts as worse (better) if its answer is, as proof lost (won) if only the proof changes. Times are CPU
seconds of this process; the last column is their sum over all questions, as a multiple of that with every engine.

ODRP's program is a baseline with objectives of its own and no part of these answers. A third integer program, which
completed a solution of the listed LP by whole patterns, was removed: the answers to these instances, their proofs and their
costs are the same without it.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.placement.instances import Instance, catalogue, generated, published
from models.errors import Infeasible, SluiceError
from models.placement import Tuning, fewest_moves, place, tune
from models.placement.exact.generated import GeneratedLp
from models.placement.exact.patterns import Patterns
from models.placement.minimum import Minimiser
from models.placement.search.repair import Repair
from models.placement.search.tree import Feasibility, FirstPlan
from models.plan.parts import CostVector

SAME: Final = 1e-7
"""Relative difference of answers that are equal."""
UNKNOWN: Final = FirstPlan(Feasibility.UNKNOWN, None)
Switch = tuple[Any, str, Callable[..., Any]]
"""Module, name, and its replacement."""

OFF: Final[dict[str, tuple[tuple[str, str, Callable[..., Any]] | Switch, ...]]] = {
    "every engine": (),
    "tree": (
        ("models.placement.feasible", "search_first", lambda *a, **k: UNKNOWN),
        ("models.placement.minimum", "search_first", lambda *a, **k: UNKNOWN),
    ),
    "listed LP": ((Patterns, "within", lambda *a, **k: None),),
    "generated LP": (
        (Minimiser, "_generated", lambda self, ray, best: best),
        (GeneratedLp, "at", lambda *a, **k: Feasibility.UNKNOWN),
    ),
    "tabu to limits": ((Repair, "run", lambda self, steps: self.excess <= 0.0),),
    "tabu to what runs": (
        ("models.placement.replan.moves", "bring_home", lambda setting, start, *a, **k: (-1, start)),
    ),
    "program of moves": (("models.placement.replan.moves", "solve", lambda *a, **k: (None, 0)),),
}
"""Engine -> replacements that switch it off."""


@dataclass(frozen=True)
class Outcome:
    """The answer to one question; a smaller value is better, and so is a proof."""

    question: str
    value: float
    """lambda* of a tuning, moves of a replan; for a plan within thresholds 0 if found or excluded, 1 if neither."""
    proved: bool
    seconds: float


@contextmanager
def without(engine: str) -> Iterator[None]:
    """Switch an engine off."""
    with ExitStack() as stack:
        for target, name, stand_in in OFF[engine]:
            if isinstance(target, str):
                stack.enter_context(patch(f"{target}.{name}", stand_in))
            else:
                stack.enter_context(patch.object(target, name, stand_in))
        yield


def timed(question: str, ask: Callable[[], tuple[float, bool]]) -> Outcome:
    started = time.process_time()
    try:
        value, proved = ask()
    except Infeasible:
        value, proved = 0.0, True
    except SluiceError:
        value, proved = float("inf"), False
    return Outcome(question, value, proved, time.process_time() - started)


def reference(instance: Instance, time_limit_s: float) -> Tuning | None:
    """The tuning by every engine, whose thresholds all other questions take."""
    try:
        return tune(instance.dataflow, instance.cluster, clock=time.process_time, time_limit_s=time_limit_s)
    except SluiceError:
        return None


def outcomes(instance: Instance, tuned: Tuning, time_limit_s: float) -> list[Outcome]:
    """All questions about an instance."""
    dataflow, cluster, clock = instance.dataflow, instance.cluster, time.process_time

    def tuning() -> tuple[float, bool]:
        own = tune(dataflow, cluster, clock=clock, time_limit_s=time_limit_s)
        return own.relaxation, own.status == "optimal"

    def within(factor: float) -> tuple[float, bool]:
        alpha = CostVector(**{d: min(1.0, factor * a) for d, a in tuned.thresholds.model_dump().items()})
        found = place(dataflow, cluster, "caps", alpha, clock=clock, time_limit_s=time_limit_s)
        return float(found.status == "unknown"), found.status != "unknown"

    def moves() -> tuple[float, bool]:
        running = place(dataflow, cluster, "evenly").placement
        least = fewest_moves(
            dataflow, cluster, running, tuned.placement, tuned.thresholds, clock=clock, time_limit_s=time_limit_s
        )
        return float(least.moves), least.status == "optimal"

    return [
        timed("tune", tuning),
        timed("place within 0.9", lambda: within(0.9)),
        timed("place within", lambda: within(1.0)),
        timed("fewest moves", moves),
    ]


def ablation(
    instances: Sequence[Instance], time_limit_s: float, progress: Progress
) -> dict[str, list[tuple[str, Outcome]]]:
    """Engine -> (instance, outcome) of every question without it."""
    results: dict[str, list[tuple[str, Outcome]]] = {engine: [] for engine in OFF}
    bar = progress.add_task("instances", total=len(instances))
    for number, instance in enumerate(instances, start=1):
        tuned = reference(instance, time_limit_s)
        if tuned is not None:
            for engine in OFF:
                with without(engine):
                    results[engine] += [(instance.name, o) for o in outcomes(instance, tuned, time_limit_s)]
        progress.advance(bar)
        if not progress.console.is_terminal and (number % 20 == 0 or number == len(instances)):
            progress.console.print(f"{number} of {len(instances)} instances")
    return results


def contributions(results: dict[str, list[tuple[str, Outcome]]]) -> Table:
    """One row for each engine and question it changes."""
    table = Table(title="Without the engine")
    for column in ("engine", "question", "asked", "worse", "better", "proof lost", "won", "time", "share of all time"):
        table.add_column(column, justify="left" if column in ("engine", "question") else "right")
    every = results["every engine"]
    total = sum(o.seconds for _, o in every)
    for engine, own in results.items():
        for question in dict.fromkeys(o.question for _, o in every):
            pairs = [(a, b) for (_, a), (_, b) in zip(every, own, strict=True) if a.question == question]
            worse = sum(b.value > a.value * (1 + SAME) + SAME for a, b in pairs)
            better = sum(b.value < a.value * (1 - SAME) - SAME for a, b in pairs)
            lost = sum(a.proved and not b.proved for a, b in pairs)
            won = sum(b.proved and not a.proved for a, b in pairs)
            before, after = sum(a.seconds for a, _ in pairs), sum(b.seconds for _, b in pairs)
            counts = (str(n or "") for n in (worse, better, lost, won))
            table.add_row(
                engine, question, str(len(pairs)), *counts, f"{after / before:.2f}", f"{(after - before) / total:+.1%}"
            )
        table.add_section()
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--random", type=int, default=200, help="random instances")
    parser.add_argument("--time-limit", type=float, default=5.0, help="CPU seconds for each question")
    parser.add_argument("--json", type=Path, help="all outcomes go there")
    options = parser.parse_args()
    console = Console(width=130)
    instances = [*catalogue(), *published(), *(generated(seed) for seed in range(options.random))]
    warm_up = reference(instances[0], options.time_limit)
    assert warm_up is not None
    outcomes(instances[0], warm_up, options.time_limit)
    with Progress(console=Console(stderr=True)) as progress:
        results = ablation(instances, options.time_limit, progress)
    if options.json:
        options.json.write_text(json.dumps({e: [(n, asdict(o)) for n, o in own] for e, own in results.items()}))
    console.print(contributions(results))


if __name__ == "__main__":
    main()
