"""A rescale: records in flight are processed, state is saved, and given to the tasks of another deployment.

Numbers in brackets refer to docs/explanation/simulator.md.
"""

import numpy as np

from testbeds.simulator.kernel.arrays import FORWARD, JOB_CLOCK, Plant, Row, SimulationState, fresh_state
from testbeds.simulator.settings import Rescaling


def state_bytes(plant: Plant, state: SimulationState) -> np.ndarray:
    """State of each task, bytes, float64[tasks]."""
    tasks = plant.operators["end"] - plant.operators["first"]
    per_record = np.repeat(plant.operators["live_per_record"], tasks)
    return np.asarray(plant.tasks["key_bytes"] + state.tasks["live"] * per_record)


def transfer_s(plant: Plant, state: SimulationState, bytes_per_s: float) -> float:
    """Time in which all workers move the state of their tasks to or from shared storage in parallel, seconds (Eq. 13).

    Args:
        bytes_per_s: limit of one task.
    """
    size = state_bytes(plant, state)
    slowest = float(np.max(size, initial=0.0)) / bytes_per_s
    for worker in plant.workers:
        own = plant.worker_tasks[worker["first"] : worker["end"]]
        slowest = max(slowest, float(np.sum(size[own])) / min(worker["io"], worker["net"]))
    return slowest


def carry_over(
    old: Plant, state: SimulationState, new: Plant, settings: Rescaling, rng: np.random.Generator
) -> SimulationState:
    """The state of another deployment of the same job, taken over from the old one (Eq. 14)."""
    carried = fresh_state(new, rng)
    carried = carried._replace(clock=state.clock, came=state.came, log=state.log)
    if settings.new_jvms:
        carried.clock[JOB_CLOCK] = 0
    for column in ("key", "left"):
        carried.edges[column] = state.edges[column]
    for before, after in zip(old.edges, new.edges, strict=True):
        waiting = np.sum(state.gates["queue"][before["first"] : before["end"]])
        share = new.gates["share"][after["first"] : after["end"]]
        carried.gates["queue"][after["first"] : after["end"]] = waiting * share / np.sum(share)
    for before, after in zip(old.operators, new.operators, strict=True):
        _carry_tasks(state, before, carried, after, _shares(new, after))
    return carried


def _shares(plant: Plant, operator: Row) -> np.ndarray:
    """Share of an operator's keys that each of its tasks has, float64[tasks]: that of the first hashed input.

    Of a source, share of its partitions.
    """
    if operator["source_share"] > 0:
        own = plant.tasks["source_share"][operator["first"] : operator["end"]]
        return np.asarray(own / np.sum(own))
    tasks = operator["end"] - operator["first"]
    for e in plant.in_edges[operator["in_first"] : operator["in_end"]]:
        edge = plant.edges[e]
        if edge["kind"] != FORWARD and edge["copies"] == 1:
            own = plant.gates["share"][edge["first"] : edge["end"]]
            return np.asarray(own / np.sum(own))
    return np.full(tasks, 1.0 / tasks)


def _carry_tasks(state: SimulationState, before: Row, carried: SimulationState, after: Row, share: np.ndarray) -> None:
    """Divide the state of an operator's old tasks among its new ones; sources divide their log by partitions."""
    old, new = slice(before["first"], before["end"]), slice(after["first"], after["end"])
    for column in ("live", "firing", "permits", "due", "log"):
        carried.tasks[column][new] = np.sum(state.tasks[column][old]) * share
    turned = int(np.max(state.tasks["turned"][old]))
    carried.tasks["turned"][new] = turned
    panes = int(before["panes"])
    if panes == 0:
        return
    kept = _ring(state, before).copy()
    for i, own in enumerate(state.tasks["turned"][old]):
        kept[i] = np.roll(kept[i], turned - int(own))
    _ring(carried, after)[:] = np.outer(share, np.sum(kept, axis=0))
    carried.tasks["pane"][new] = after["ring_first"] + np.arange(len(share)) * panes + turned % panes


def _ring(state: SimulationState, operator: Row) -> np.ndarray:
    """Panes of an operator's tasks, a view, float64[tasks, panes]."""
    tasks, panes, first = operator["end"] - operator["first"], operator["panes"], operator["ring_first"]
    return state.ring[first : first + tasks * panes].reshape(tasks, panes)
