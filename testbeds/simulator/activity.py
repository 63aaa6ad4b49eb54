"""From the kernel's measures to the activity of operators, without tables, for the loop of a scaling policy."""

from collections.abc import Mapping

import numpy as np

from models.metrics import Activity
from testbeds.simulator.kernel import arrays
from testbeds.simulator.kernel.arrays import Plant, SimulationState
from testbeds.simulator.rescaling import state_bytes
from testbeds.simulator.samples import TaskColumns


def activity(
    columns: TaskColumns, plant: Plant, state: SimulationState, measured: np.ndarray, seconds: float
) -> Mapping[str, Activity]:
    """The activity of each operator in `seconds` of running.

    Args:
        measured: float64[intervals, tasks, MEASURES], from the kernel.
    """
    total = np.ascontiguousarray(measured.sum(axis=0).T)
    busy = np.minimum(total[arrays.BUSY], seconds)
    blocked = np.minimum(total[arrays.BACKPRESSURED], seconds - busy)
    idle = np.maximum(seconds - busy - blocked, 0.0)
    lag = np.maximum(measured[-1, :, arrays.LAG], 0.0)
    kept = state_bytes(plant, state)
    queued = _queue_share(plant, state)
    found = {}
    for first, end in zip(plant.operators["first"].tolist(), plant.operators["end"].tolist(), strict=True):
        found[columns.operators[first]] = Activity(
            seconds=seconds,
            records_in=total[arrays.RECORDS_IN, first:end],
            records_out=total[arrays.RECORDS_OUT, first:end],
            busy_s=busy[first:end],
            backpressured_s=blocked[first:end],
            idle_s=idle[first:end],
            cpu_s=total[arrays.CPU, first:end],
            cache_hits=total[arrays.HITS, first:end],
            cache_misses=total[arrays.MISSES, first:end],
            state_time_s=total[arrays.STATE_TIME, first:end],
            input_queue_share=queued[first:end],
            lag_records=lag[first:end],
            state_bytes=kept[first:end],
            keeps_state=bool(columns.keeps_state[first]),
        )
    return found


def _queue_share(plant: Plant, state: SimulationState) -> np.ndarray:
    """Share of the buffers to each task that is full, float64[tasks]; 0 at sources."""
    queue, room = np.zeros(len(plant.tasks)), np.zeros(len(plant.tasks))
    waiting, most = state.gates["queue"], plant.gates["room"]
    gates = list(zip(plant.edges["first"].tolist(), plant.edges["end"].tolist(), strict=True))
    edges, operators = plant.in_edges.tolist(), plant.operators
    columns = (operators[name].tolist() for name in ("first", "end", "in_first", "in_end"))
    for first, end, in_first, in_end in zip(*columns, strict=True):
        for e in edges[in_first:in_end]:
            own = slice(*gates[e])
            queue[first:end] += waiting[own]
            room[first:end] += most[own]
    return np.divide(queue, room, out=np.zeros_like(queue), where=room > 0)
