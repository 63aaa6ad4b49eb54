"""Mixes: which tasks of a slot sharing group share a slot."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.dataflow import Partitioning
from models.placement.problem import DIMENSIONS, task_loads
from models.placement.shared.sharing import SharedDataflow


@dataclass(frozen=True)
class Bundle:
    """Slots that hold a task of the same vertices."""

    vertices: tuple[str, ...]
    """Of one group, in topological order."""
    slots: int


Mix = tuple[Bundle, ...]


def nested(shared: SharedDataflow) -> Mix:
    """Flink's default: slot i of a group holds subtask i of each of its vertices. So there are no more bundles than
    vertices, and each contains the next one."""

    def from_first(vertices: Sequence[str], slots: int) -> dict[str, list[int]]:
        return {v: list(range(shared.parallelism[v])) for v in vertices}

    return _mix(shared, from_first)


def round_robin(shared: SharedDataflow) -> Mix:
    """Flink's `taskmanager.load-balance.mode: TASKS` (FLIP-370): each vertex that is narrower than its group starts in
    the slot after the last one of the narrower vertex before it."""

    def in_turn(vertices: Sequence[str], slots: int) -> dict[str, list[int]]:
        taken, at = {}, 0
        for v in vertices:
            tasks = shared.parallelism[v]
            start = 0 if tasks == slots else at
            taken[v] = [(start + i) % slots for i in range(tasks)]
            at = at if tasks == slots else (start + tasks) % slots
        return taken

    return _mix(shared, in_turn)


def by_load(shared: SharedDataflow, weights: Sequence[float]) -> Mix:
    """Vertices that are narrower than their group go to its slots with the least load so far, the heaviest first.

    Vertices that a forward edge joins stay in the same slots, as far as they are of one group, so that their records stay
    in the slot.

    Args:
        weights: of cpu, io and net, each as a share of the load of all tasks.
    """
    load = _weighted(shared, weights)

    def evenly(vertices: Sequence[str], slots: int) -> dict[str, list[int]]:
        taken: dict[str, list[int]] = {}
        filled = np.zeros(slots)
        units = _paired(shared, vertices)
        # The widest first, then by weight: they are in every slot, so where the others go does not matter to them.
        for unit in sorted(units, key=lambda u: (shared.parallelism[u[0]] < slots, -sum(load[v] for v in u))):
            chosen = np.argsort(filled, kind="stable")[: shared.parallelism[unit[0]]].tolist()
            filled[chosen] += sum(load[v] for v in unit)
            taken |= dict.fromkeys(unit, chosen)
        return taken

    return _mix(shared, evenly)


BALANCES: Final = {"cpu": (1.0, 0.0, 0.0), "io": (0.0, 1.0, 0.0), "net": (0.0, 0.0, 1.0), "all": (1.0, 1.0, 1.0)}
"""Weights of `by_load` that are tried."""


def candidates(shared: SharedDataflow) -> dict[str, Mix]:
    """The distinct mixes that are worth placing, Flink's default first."""
    named = {
        "nested": nested(shared),
        "round-robin": round_robin(shared),
        **{f"by-load-{name}": by_load(shared, weights) for name, weights in BALANCES.items()},
    }
    found: dict[str, Mix] = {}
    for name, mix in named.items():
        if set(mix) not in [set(other) for other in found.values()]:
            found[name] = mix
    return found


Dealt = Callable[[Sequence[str], int], Mapping[str, Sequence[int]]]
"""Vertices of a group and its slots -> the slots that hold a task of each vertex."""


def _mix(shared: SharedDataflow, dealt: Dealt) -> Mix:
    bundles: Counter[tuple[str, ...]] = Counter()
    for vertices in shared.groups.values():
        slots = max(shared.parallelism[v] for v in vertices)
        taken = {v: set(own) for v, own in dealt(vertices, slots).items()}
        bundles.update(tuple(v for v in vertices if i in taken[v]) for i in range(slots))
    return tuple(Bundle(vertices, slots) for vertices, slots in bundles.items())


def _weighted(shared: SharedDataflow, weights: Sequence[float]) -> dict[str, float]:
    """Load of one task of each vertex: the weighted sum of its shares of all load."""
    loads = task_loads(shared.dataflow)[: len(DIMENSIONS)]
    total = loads @ [o.parallelism for o in shared.dataflow.operators]
    shares = loads / np.where(total > 0, total, 1.0)[:, None]
    return dict(zip(shared.parallelism, (np.asarray(weights) @ shares).tolist(), strict=True))


def _paired(shared: SharedDataflow, vertices: Sequence[str]) -> list[list[str]]:
    """The vertices of a group, those that forward edges join together."""
    units = {v: [v] for v in vertices}
    for e in shared.dataflow.edges:
        both = e.upstream in units and e.downstream in units
        if both and e.partitioning is Partitioning.FORWARD and units[e.upstream] is not units[e.downstream]:
            joined = units[e.upstream] + units[e.downstream]
            units |= dict.fromkeys(joined, joined)
    return list({id(unit): unit for unit in units.values()}.values())
