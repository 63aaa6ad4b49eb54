"""Placement of the tasks of a configuration: on workers of the cluster, or on injectors beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from models.cluster import Cluster, Worker
from models.errors import Infeasible, InvalidInput
from models.job import Job, Kind
from models.plan.parts import Placement
from testbeds.protocol import Configuration

TASKS_PER_INJECTOR = 16
"""Source tasks on one injector; an injector is never short of cores, disk or network (StreamBed section 8.1)."""


@dataclass(frozen=True)
class Placed:
    """The workers in use, and for each operator the worker of each of its tasks."""

    workers: tuple[Worker, ...]
    """Workers of the cluster first, then injectors (named injector-1, ...), which have no limits."""
    injectors: int
    """Number of injectors among `workers`."""
    task_workers: Mapping[str, tuple[int, ...]]
    """Operator -> index in `workers` of its tasks 0, 1, ..."""


def check_parallelism(job: Job, configuration: Configuration) -> None:
    """Check that the configuration names every operator of the job once, with at least one task.

    Raises:
        InvalidInput: an operator is missing or unknown, a task count is below 1 or above the operator's maximum.
    """
    known = [o.name for o in job.operators]
    unknown = sorted(set(configuration.parallelism) - set(known))
    missing = [name for name in known if name not in configuration.parallelism]
    if unknown or missing:
        raise InvalidInput(
            f"the parallelism must name each operator of job {job.name!r}, but {_list(missing)} missing "
            f"and {_list(unknown)} unknown; its operators: {', '.join(known)}"
        )
    for name, tasks in configuration.parallelism.items():
        if tasks < 1:
            raise InvalidInput(f"an operator needs at least 1 task, but {name!r} got {tasks}")
        most = job.operator(name).max_parallelism
        if most is not None and tasks > most:
            raise InvalidInput(
                f"operator {name!r} can have at most {most} tasks (its max_parallelism), but got {tasks}"
            )


def check_worker_memory(cluster: Cluster, memory_mb: float) -> None:
    """Raise Infeasible if a worker has too little memory for a TaskManager of `memory_mb` MiB."""
    for worker in cluster.workers:
        if worker.memory_mb is not None and worker.memory_mb < memory_mb:
            raise Infeasible(
                f"worker {worker.name!r} has {worker.memory_mb:g} MiB, too few for a TaskManager of {memory_mb:g} MiB; "
                f"ask for less memory"
            )


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(map(repr, names[:5])) or 'none'} {'is' if len(names) < 2 else 'are'}"


def place(job: Job, configuration: Configuration, cluster: Cluster, managed_mb: Sequence[float]) -> Placed:
    """Assign every task to a worker: as the configuration says, or each operator evenly with sources on injectors.

    Args:
        managed_mb: managed memory of each worker of the cluster, MiB; a task without its own gets an even share of it.

    Raises:
        InvalidInput: the placement names an unknown worker or operator, or the wrong number of tasks.
        Infeasible: there are fewer slots than tasks, or no worker has the memory for a task.
    """
    if configuration.placement is None:
        on_cluster = _evenly(job, configuration, cluster, managed_mb)
    else:
        on_cluster = _as_given(job, configuration, cluster, configuration.placement)
    injected = [o.name for o in job.sources if o.name not in on_cluster]
    most = max((configuration.parallelism[name] for name in injected), default=0)
    injectors = -(-most // TASKS_PER_INJECTOR)
    first = len(cluster.workers)
    spread = {
        name: tuple(first + i // TASKS_PER_INJECTOR for i in range(configuration.parallelism[name]))
        for name in injected
    }
    extra = tuple(Worker(name=f"injector-{i + 1}", slots=TASKS_PER_INJECTOR * len(injected)) for i in range(injectors))
    return Placed((*cluster.workers, *extra), injectors, {**on_cluster, **spread})


def _evenly(
    job: Job, configuration: Configuration, cluster: Cluster, managed_mb: Sequence[float]
) -> dict[str, tuple[int, ...]]:
    """Tasks of each operator in turn to the workers with the largest share of free slots; large memories go first."""
    names = [name for name in job.order if job.operator(name).kind is not Kind.SOURCE]
    tasks = sum(configuration.parallelism[name] for name in names)
    if tasks > cluster.slots:
        raise Infeasible(
            f"{tasks} tasks need as many slots, but the testbed {cluster.name!r} has {cluster.slots}; ask for fewer "
            "tasks or use a larger cluster"
        )
    slots = [w.slots for w in cluster.workers]
    even = [mb / n for mb, n in zip(managed_mb, slots, strict=True)]
    used, left = [0] * len(slots), list(managed_mb)
    placed: dict[str, tuple[int, ...]] = {}
    for name in sorted(names, key=lambda n: -configuration.managed_memory_mb.get(n, even[0])):
        asked = configuration.managed_memory_mb.get(name)
        own = [0] * len(slots)
        workers = []
        for _ in range(configuration.parallelism[name]):
            need = even if asked is None else [asked] * len(slots)
            free = [w for w in range(len(slots)) if used[w] < slots[w] and need[w] <= left[w] + even[w] * 1e-9]
            if not free:
                raise _no_room(name, need[0], cluster)
            best = min(free, key=lambda w: (own[w] / slots[w], used[w] / slots[w], w))
            own[best] += 1
            used[best] += 1
            left[best] -= need[best]
            workers.append(best)
        placed[name] = tuple(sorted(workers))
    return placed


def _no_room(name: str, asked_mb: float, cluster: Cluster) -> Infeasible:
    return Infeasible(
        f"no worker of {cluster.name!r} has a free slot and {asked_mb:.0f} MiB of managed memory left for another task of "
        f"{name!r}; ask for fewer tasks or less memory, or use a larger cluster"
    )


def _as_given(
    job: Job, configuration: Configuration, cluster: Cluster, placement: Placement
) -> dict[str, tuple[int, ...]]:
    index = {w.name: i for i, w in enumerate(cluster.workers)}
    unknown = sorted(set(placement) - set(index))
    if unknown:
        raise InvalidInput(
            f"the placement names the worker {unknown[0]!r}, which the testbed does not have; its workers: "
            f"{', '.join(list(index)[:5])}{', ...' if len(index) > 5 else ''}"
        )
    placed: dict[str, list[int]] = {}
    for worker, tasks in placement.items():
        count, slots = sum(tasks.values()), cluster.workers[index[worker]].slots
        if count > slots:
            raise Infeasible(f"worker {worker!r} has {slots} slots, but the placement gives it {count} tasks")
        for name, share in tasks.items():
            placed.setdefault(name, []).extend([index[worker]] * share)
    for name in configuration.parallelism:
        wanted, got = configuration.parallelism[name], len(placed.get(name, ()))
        if got != wanted and (got or job.operator(name).kind is not Kind.SOURCE):
            raise InvalidInput(f"the placement must hold all {wanted} tasks of {name!r} once, but it holds {got}")
    strangers = sorted(set(placed) - set(configuration.parallelism))
    if strangers:
        raise InvalidInput(f"the placement names the operator {strangers[0]!r}, which job {job.name!r} does not have")
    return {name: tuple(sorted(workers)) for name, workers in placed.items()}
