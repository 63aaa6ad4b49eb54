"""From a job, a configuration and a cluster to the tables that the kernel runs on."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.cluster import Worker
from models.errors import InvalidInput
from models.job import Job, Operator, WindowKind
from testbeds.placing import Placed
from testbeds.simulator.kernel import arrays
from testbeds.simulator.kernel.arrays import OPERATOR, TASK, WORKER, Plant, StatePrices
from testbeds.simulator.layout.sources import source_shares
from testbeds.simulator.layout.wiring import Wiring
from testbeds.simulator.settings import Physics, StateAccess

PANES_OF_FADING_STATE = 10
"""Session windows and state with a time to live are forgotten in this many portions."""


@dataclass(frozen=True)
class Resources:
    """Memory of the tasks and workers."""

    cache_bytes: Mapping[str, tuple[float, ...]]
    """Block cache of each task of each operator, bytes."""
    memtable_bytes: Mapping[str, tuple[float, ...]]
    """Write buffer of each task of each operator, bytes; infinite where it has no managed memory."""
    network_mb: tuple[float, ...]
    """Network memory of each worker, MiB; infinite on injectors."""


def lay_out(job: Job, parallelism: Mapping[str, int], placed: Placed, resources: Resources, physics: Physics) -> Plant:
    """The deployment as tables.

    Raises:
        InvalidInput: an operator has more tasks than key groups, or panes shorter than a step.
    """
    workers = {name: np.array(placed.task_workers[name], dtype=np.int64) for name in job.order}
    wiring = Wiring(job, parallelism, workers, resources.network_mb, physics)
    edges, gates = wiring.edges_and_gates()
    out_edges = [wiring.out_of(name) for name in job.order]
    in_edges = [wiring.into(name) for name in job.order]
    task_worker = np.concatenate([workers[name] for name in job.order])
    return Plant(
        step_s=physics.step_s,
        cold_slowdown=physics.cold_slowdown,
        cold_decay_s=physics.cold_decay_s,
        full_load_slowdown=physics.full_load_slowdown,
        source_burst_s=math.inf if physics.source_burst_s == "all" else physics.source_burst_s,
        stamped_on_arrival=physics.stamped == "arrival",
        access=_state_prices(physics.state),
        operators=_operators(job, parallelism, out_edges, in_edges, wiring, physics.step_s),
        edges=edges,
        gates=gates,
        tasks=_tasks(job, parallelism, task_worker, wiring, resources),
        workers=_workers(placed.workers, task_worker),
        out_edges=np.array([e for own in out_edges for e in own], dtype=np.int64),
        in_edges=np.array([e for own in in_edges for e in own], dtype=np.int64),
        worker_tasks=np.argsort(task_worker, kind="stable").astype(np.int64),
    )


def _state_prices(state: StateAccess) -> StatePrices:
    return StatePrices(
        hit_latency_s=state.hit_latency_s,
        block_latency_s=state.block_latency_s,
        block_bytes=state.block_bytes,
        blocks_per_miss=state.blocks_per_miss,
        most_io_load=state.most_io_load,
        flush_s=state.flush_s,
        write_amplification=state.write_amplification,
        cached_bytes_per_live_byte=state.cached_bytes_per_live_byte,
    )


def _operators(
    job: Job,
    parallelism: Mapping[str, int],
    out_edges: list[list[int]],
    in_edges: list[list[int]],
    wiring: Wiring,
    step_s: float,
) -> np.ndarray:
    table = np.zeros(len(job.order), OPERATOR)
    task = out = into = ring = 0
    for row, name, outgoing, incoming in zip(table, job.order, out_edges, in_edges, strict=True):
        operator, tasks = job.operator(name), parallelism[name]
        panes, pane_steps = _panes(operator, step_s)
        row["first"], row["end"] = task, task + tasks
        row["out_first"], row["out_end"] = out, out + len(outgoing)
        row["in_first"], row["in_end"] = into, into + len(incoming)
        row["ring_first"], row["panes"], row["pane_steps"] = ring, panes, pane_steps
        row["emission"] = _emission(operator)
        row["source_share"] = 0.0 if incoming else operator.rate_share
        row["selectivity"] = operator.selectivity if outgoing else 0.0
        row["cpu_s"] = operator.cost.cpu_s
        row["read_bytes"] = operator.cost.state_read_bytes
        row["write_bytes"] = operator.cost.state_write_bytes
        row["sent_bytes"] = operator.cost.bytes_out * wiring.copies(name)
        row["fire_share"] = operator.window.fire_share if operator.window and row["selectivity"] > 0 else 0.0
        row["live_per_record"] = operator.state.bytes_per_record if operator.state else 0.0
        row["hot_set"] = operator.state.hot_set_ratio if operator.state else 1.0
        task, out, into, ring = task + tasks, out + len(outgoing), into + len(incoming), ring + tasks * panes
    return table


def _emission(operator: Operator) -> int:
    if operator.window is None:
        return arrays.AT_ONCE
    return arrays.OLDEST_PANE if operator.window.kind is WindowKind.SESSION else arrays.ALL_PANES


def _panes(operator: Operator, step_s: float) -> tuple[int, int]:
    """Number of live panes, and steps of each; (0, 1) for state that never expires."""
    window, ttl_s = operator.window, operator.state.ttl_s if operator.state else None
    length_s = window.length_s if window is not None else ttl_s
    if length_s is None:
        return 0, 1
    pane_s = length_s / PANES_OF_FADING_STATE
    if window is not None and window.firing_interval_s is not None:
        pane_s = window.firing_interval_s
    if pane_s < step_s * (1 - 1e-9):
        raise InvalidInput(
            f"operator {operator.name!r}: the simulator resolves times of {step_s:g} s and longer, but its state expires "
            f"every {pane_s:g} s; lengthen the window, its slide or the time to live, or shorten the simulator's step"
        )
    return max(round(length_s / pane_s), 1), round(pane_s / step_s)


def _tasks(
    job: Job, parallelism: Mapping[str, int], task_worker: np.ndarray, wiring: Wiring, resources: Resources
) -> np.ndarray:
    table = np.zeros(len(task_worker), TASK)
    table["worker"] = task_worker
    table["cache_bytes"] = np.concatenate([np.array(resources.cache_bytes[name]) for name in job.order])
    table["memtable_bytes"] = np.concatenate([np.array(resources.memtable_bytes[name]) for name in job.order])
    table["key_bytes"] = np.concatenate([wiring.key_bytes(name) for name in job.order])
    table["remote_bytes"] = np.concatenate([wiring.remote_bytes(name) for name in job.order])
    table["source_share"] = np.concatenate([source_shares(job, name, parallelism[name]) for name in job.order])
    waits = [job.operator(name).cost.external_wait_s for name in job.order]
    table["external_wait_s"] = np.repeat(waits, [parallelism[name] for name in job.order])
    return table


def _workers(workers: tuple[Worker, ...], task_worker: np.ndarray) -> np.ndarray:
    table = np.zeros(len(workers), WORKER)
    table["end"] = np.cumsum(np.bincount(task_worker, minlength=len(workers)))
    table["first"][1:] = table["end"][:-1]
    for column in ("cores", "io", "net"):
        limits = [getattr(w, column) for w in workers]
        table[column] = [np.inf if limit is None else limit for limit in limits]
    return table
