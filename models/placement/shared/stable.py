"""Replanning shared slots: slots with the same tasks stay where they run, as far as the costs allow."""

from collections.abc import Mapping, Sequence

from models.cluster import Cluster
from models.placement.replan.moves import COST_TOLERANCE, StablePlacement, fewest_moves_in
from models.placement.shared.bundles import bundle_names, bundled, by_vertex
from models.placement.shared.mixes import Bundle, Mix
from models.placement.shared.sharing import SharedDataflow
from models.placement.time_limit import Clock, TimeLimit
from models.plan.parts import CostVector, Placement
from models.plan.slots import SlotBundle

Slots = Mapping[str, Sequence[SlotBundle]]
"""Worker -> its slots that hold tasks."""


def fewest_slot_moves(
    shared: SharedDataflow,
    cluster: Cluster,
    running: Slots,
    best: Slots,
    thresholds: CostVector,
    *,
    seed: int = 0,
    clock: Clock | None = None,
    time_limit_s: float | None = None,
) -> tuple[StablePlacement, dict[str, tuple[SlotBundle, ...]]]:
    """The placement of the slots of `best` that moves the fewest, as `fewest_moves` of tasks.

    A slot stays if its worker runs one with tasks of the same vertices; all others start.

    Returns:
        the placement by operator, its moves in slots; and the slots of each worker.
    """
    mix = _mix_of(best)
    found = fewest_moves_in(
        bundled(shared, mix, cluster),
        _by_bundle(mix, running),
        _by_bundle(mix, best),
        thresholds,
        COST_TOLERANCE,
        seed,
        TimeLimit(clock, time_limit_s),
    )
    placement = shared.by_operator(by_vertex(mix, found.placement))
    return found.model_copy(update={"placement": placement, "subtasks": None}), slots_of(mix, found.placement)


def slots_of(mix: Mix, placement: Placement) -> dict[str, tuple[SlotBundle, ...]]:
    """The slots of each worker, from a placement of bundles."""
    bundles = dict(zip(bundle_names(mix), mix, strict=True))
    return {
        worker: tuple(SlotBundle(vertices=bundles[name].vertices, slots=number) for name, number in slots.items())
        for worker, slots in placement.items()
    }


def _mix_of(slots: Slots) -> Mix:
    counts: dict[tuple[str, ...], int] = {}
    for bundles in slots.values():
        for bundle in bundles:
            counts[bundle.vertices] = counts.get(bundle.vertices, 0) + bundle.slots
    return tuple(Bundle(vertices, number) for vertices, number in counts.items())


def _by_bundle(mix: Mix, slots: Slots) -> Placement:
    """The slots as a placement of the bundles of a mix; others are left out."""
    names = {b.vertices: name for b, name in zip(mix, bundle_names(mix), strict=True)}
    placed: Placement = {}
    for worker, bundles in slots.items():
        for bundle in bundles:
            if bundle.vertices in names:
                placed.setdefault(worker, {})[names[bundle.vertices]] = bundle.slots
    return placed
