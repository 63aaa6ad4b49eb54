"""The facts of a measured configuration at its limit, from the samples of one window."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from models.capacity.diagnosis.facts import BoundFacts, OperatorFacts
from models.cluster import Worker
from models.dataflow import Partitioning
from models.errors import SluiceError
from models.job import Job, Operator
from models.keys.groups import key_groups
from testbeds.protocol import MeasuredWindow

SUSTAINED = 0.99
"""Share of the offered rate that is achieved where it is sustained (StreamBed section 4)."""
Columns = Mapping[str, np.ndarray]


def limit_window(windows: list[MeasuredWindow]) -> MeasuredWindow:
    """The window that shows the limit best: the lowest rate that was not sustained or, without one, the highest that was."""
    moving = [w for w in windows if w.achieved_rate > 0]
    beyond = [w for w in moving if w.achieved_rate < SUSTAINED * w.target_rate]
    return min(beyond, key=_offered) if beyond else max(moving, key=_offered)


def _offered(window: MeasuredWindow) -> float:
    return window.target_rate


def bound_facts(job: Job, window: MeasuredWindow, workers: Mapping[str, Worker]) -> BoundFacts:
    """What the samples of a window say of every operator, and of the workers whose capacity is known.

    Args:
        workers: of the cluster, by name.
    """
    of = {name: _columns(window.samples, "operator", name) for name in job.order}
    sent = {name: float(of[name]["bytes_out"].sum()) for name in job.order if job.downstream_edges(name)}
    used = [
        _worker_use(_columns(window.samples, "worker", name), worker, len(workers)) for name, worker in workers.items()
    ]
    cores = [use for use, _ in used if use is not None]
    network = [use for _, use in used if use is not None]
    return BoundFacts(
        rate=window.achieved_rate,
        measured=True,
        operators=tuple(operator_facts(job, job.operator(name), of[name]) for name in job.order),
        cores_use=max(cores, default=None),
        network_use=max(network, default=None),
        network_vertex=max(sent, key=sent.__getitem__) if network else None,
    )


def _columns(samples: pa.Table, column: str, value: str) -> Columns:
    own = samples.filter(pc.equal(samples[column], value))
    return {name: own[name].to_numpy() for name in own.column_names}


def operator_facts(job: Job, operator: Operator, of: Columns) -> OperatorFacts:
    """What the samples of an operator's tasks say.

    Raises:
        SluiceError: there are none.
    """
    tasks, seconds = len(np.unique(of["task"])), float(of["interval_s"].sum())
    if tasks == 0:
        raise SluiceError(f"operator {operator.name!r} has no samples in the window; observe for longer")
    keyed = any(e.partitioning is Partitioning.HASH for e in job.upstream_edges(operator.name))
    busy, reads = of["busy_s"].sum(), (of["cache_hits"] + of["cache_misses"]).sum()
    of_tasks = by_task(of, tasks)
    fullest = None if of_tasks is None else float(of_tasks.mean(axis=1).max())
    peak = None if of_tasks is None else float(of_tasks.max(axis=0).mean())
    return OperatorFacts(
        name=operator.name,
        parallelism=tasks,
        upstream=tuple(e.upstream for e in job.upstream_edges(operator.name)),
        is_source=not job.upstream_edges(operator.name),
        keyed=keyed,
        windowed=operator.window is not None,
        most_tasks=job.most_tasks(operator.name),
        key_groups=(job.key_groups or key_groups(tasks)) if keyed else None,
        busyness=float(busy) / seconds,
        fullest_busyness=fullest,
        peak_busyness=peak,
        backpressure=min(float(of["backpressured_s"].sum()) / seconds, 1.0),
        state_share=_state_share(of, float(busy)),
        cache_hit_rate=float(of["cache_hits"].sum() / reads) if reads > 0 else None,
    )


def by_task(of: Columns, tasks: int) -> np.ndarray | None:
    """Busyness of each task in each interval, shape (tasks, intervals); None where samples are missing."""
    if len(of["task"]) % tasks:
        return None
    order = np.lexsort((of["time_s"], of["task"]))
    number = of["task"][order].reshape(tasks, -1)
    if (number != number[:, :1]).any():
        return None
    return np.asarray((of["busy_s"] / of["interval_s"])[order].reshape(tasks, -1))


def _state_share(of: Columns, busy_s: float) -> float | None:
    """Share of the busy time in state accesses; None without a known latency."""
    latency = of["state_latency_s"].astype(float)
    known = ~np.isnan(latency)
    if busy_s <= 0 or not known.any():
        return None
    accesses = (of["cache_hits"] + of["cache_misses"])[known]
    return min(float((latency[known] * accesses).sum()) / busy_s, 1.0)


def _worker_use(of: Columns, worker: Worker, workers: int) -> tuple[float | None, float | None]:
    """Use of a worker's cores and of its outbound network, of which records to its own tasks, its share of all, need none."""
    seconds = len(np.unique(of["time_s"])) * float(of["interval_s"].max()) if len(of["time_s"]) else 0.0
    if seconds == 0:
        return None, None
    remote = float(of["bytes_out"].sum()) * (1 - 1 / workers)
    return (
        None if worker.cores is None else float(of["cpu_s"].sum()) / seconds / worker.cores,
        None if worker.net is None else remote / seconds / worker.net,
    )
