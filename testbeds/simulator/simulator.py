"""The embedded testbed: a simulated cluster of Flink TaskManagers."""

from collections.abc import Sequence

import numpy as np

from models.cluster import Cluster
from models.errors import Infeasible, InvalidInput
from models.job import Job
from models.resources.memory import managed_memory_per_slot_mb
from testbeds.placing import Placed, check_parallelism, check_worker_memory, place
from testbeds.protocol import Configuration, Limits
from testbeds.simulator.layout.buffers import BYTES_PER_MB
from testbeds.simulator.layout.memory import cache_mb, network_memory_mb, write_buffer_mb
from testbeds.simulator.layout.plant import Resources, lay_out
from testbeds.simulator.run import SimulatedDeployment, SimulatedRun
from testbeds.simulator.samples import TaskColumns
from testbeds.simulator.settings import Physics

MEMORY_LEVELS_MB = (8192.0, 16384.0, 32768.0, 65536.0)
"""TaskManager memory of StreamBed's profiles of 0.5, 1, 2 and 4 GB a slot (section 8.2)."""


def streambed_cluster(workers: int = 3) -> Cluster:
    """StreamBed's nodes (section 8.1): 16 slots on 16 of 18 cores, SSD of 530 MB/s, 25 Gb/s; 3 are its test cluster."""
    return Cluster.model_validate(
        {
            "name": "streambed",
            "count": workers,
            "slots": 16,
            "cores": 16,
            "memory_mb": 65536,
            "io": 530e6,
            "net": 25e9 / 8,
        }
    )


class Simulator:
    """Implements `testbeds.protocol.Testbed`."""

    def __init__(
        self,
        cluster: Cluster | None = None,
        memory_levels_mb: Sequence[float] = MEMORY_LEVELS_MB,
        physics: Physics | None = None,
    ) -> None:
        """A testbed with the workers of `cluster` (StreamBed's three by default), and injectors for the sources.

        Args:
            memory_levels_mb: available TaskManager memory sizes, MiB; sizes larger than a worker are left out.
            physics: constants of the model; the documented ones by default.
        """
        self._cluster = cluster or streambed_cluster()
        self._physics = physics or Physics()
        largest = min((w.memory_mb for w in self._cluster.workers if w.memory_mb is not None), default=float("inf"))
        fitting = sorted(level for level in memory_levels_mb if level <= largest)
        if not fitting:
            fitting = [largest]
        self._levels = tuple(fitting)

    @property
    def name(self) -> str:
        return "simulator"

    @property
    def limits(self) -> Limits:
        return Limits(
            max_task_slots=self._cluster.slots,
            memory_levels_mb=self._levels,
            slots_per_worker=max(w.slots for w in self._cluster.workers),
            source_burst_s=self._physics.source_burst_s,
        )

    @property
    def cluster(self) -> Cluster:
        return self._cluster

    def deploy(self, job: Job, configuration: Configuration, *, run: str, seed: int) -> SimulatedRun:
        """Start the job; see `testbeds.protocol.Testbed.deploy`."""

        def lay_out_as(wanted: Configuration) -> SimulatedDeployment:
            return self._lay_out(job, wanted, run)

        return SimulatedRun(lay_out_as, configuration, self._physics, seed)

    def _lay_out(self, job: Job, configuration: Configuration, run: str) -> SimulatedDeployment:
        check_parallelism(job, configuration)
        even = self._even_share_mb(job, configuration)
        room = [mb * worker.slots for mb, worker in zip(even, self._cluster.workers, strict=True)]
        placed = place(job, configuration, self._cluster, room)
        resources = self._resources(configuration, placed, even)
        plant = lay_out(job, configuration.parallelism, placed, resources, self._physics)
        return SimulatedDeployment(configuration, plant, _columns(job, configuration, placed, run))

    def _even_share_mb(self, job: Job, configuration: Configuration) -> list[float]:
        """Managed memory of one slot of each worker, MiB."""
        strangers = sorted(set(configuration.managed_memory_mb) - set(configuration.parallelism))
        if strangers:
            raise InvalidInput(f"managed memory is given to {strangers[0]!r}, which job {job.name!r} does not have")
        check_worker_memory(self._cluster, configuration.memory_mb)
        return [managed_memory_per_slot_mb(configuration.memory_mb, worker.slots) for worker in self._cluster.workers]

    def _resources(self, configuration: Configuration, placed: Placed, even: list[float]) -> Resources:
        """Block cache and write buffer of each task, and network memory of each worker."""
        flink, on_cluster = self._physics.flink, len(self._cluster.workers)
        network = network_memory_mb(configuration.memory_mb, flink)
        managed = {
            name: [
                configuration.managed_memory_mb.get(name, even[w] if w < on_cluster else 0.0)
                for w in placed.task_workers[name]
            ]
            for name in configuration.parallelism
        }
        self._check_managed(managed, placed, even)
        reserved = self._physics.state.reserved_mb
        return Resources(
            cache_bytes={
                name: tuple(max(cache_mb(mb, flink) - reserved, 0.0) * BYTES_PER_MB for mb in per_task)
                for name, per_task in managed.items()
            },
            memtable_bytes={
                name: tuple(write_buffer_mb(mb, flink) * BYTES_PER_MB or float("inf") for mb in per_task)
                for name, per_task in managed.items()
            },
            network_mb=(*[network] * on_cluster, *[float("inf")] * placed.injectors),
        )

    def _check_managed(self, managed: dict[str, list[float]], placed: Placed, even: list[float]) -> None:
        """Check that the managed memory given to tasks fits their workers."""
        for w, worker in enumerate(self._cluster.workers):
            given = sum(
                mb
                for name, per_task in managed.items()
                for mb, at in zip(per_task, placed.task_workers[name], strict=True)
                if at == w
            )
            if given > even[w] * worker.slots * (1 + 1e-9):
                raise Infeasible(
                    f"the tasks on worker {worker.name!r} were given {given:.0f} MiB of managed memory, but it has "
                    f"{even[w] * worker.slots:.0f} MiB; give less, or more memory to the TaskManager"
                )


def _columns(job: Job, configuration: Configuration, placed: Placed, run: str) -> TaskColumns:
    tasks = [(name, i) for name in job.order for i in range(configuration.parallelism[name])]
    sources = {o.name for o in job.sources}
    stateful = {o.name for o in job.operators if o.cost.state_read_bytes > 0 or o.cost.state_write_bytes > 0}
    return TaskColumns(
        run=run,
        job=job.name,
        operators=[name for name, _ in tasks],
        tasks=np.array([i for _, i in tasks], dtype=np.int64),
        workers=[placed.workers[placed.task_workers[name][i]].name for name, i in tasks],
        is_source=np.array([name in sources for name, _ in tasks]),
        keeps_state=np.array([name in stateful for name, _ in tasks]),
    )
