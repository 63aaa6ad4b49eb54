"""The profile of a local cluster: its TaskManagers, their memory and cores, and Flink's settings."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, get_args

import yaml

from models.errors import Infeasible, InvalidInput
from models.resources.memory import MANAGED_FRACTION, METASPACE_MB, managed_memory_per_slot_mb
from testbeds.flink.local.distribution import Release

OFF_HEAP_MB: Final = 32.0
NETWORK_MB: Final = 64.0
FRAMEWORK_HEAP_MB: Final = 96.0
TASK_HEAP_MB: Final = 64.0
"""Least heap for tasks, MiB."""
JOB_MANAGER_MB: Final = 640.0

StateBackend = Literal["rocksdb", "forst"]
"""Where jobs keep their state; both count accesses under the same names. ForSt comes with Flink 2."""
_COUNTED: Final = ("bytes-read", "bytes-written", "block-cache-hit", "block-cache-miss")

STATE_METRICS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{f"state.backend.{one}.metrics.{what}": "true" for one in get_args(StateBackend) for what in _COUNTED},
        # Flink times one access in a hundred, so the others are not slowed down.
        "state.latency-track.keyed-state-enabled": "true",
        "state.latency-track.sample-interval": "100",
    }
)
"""Metrics of a job's state, whatever its backend; settings of a cluster or of one job."""

SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "jobmanager.scheduler": "adaptive",
        # Rescales are deliberate here, so there is no reason to wait before one.
        "jobmanager.adaptive-scheduler.scaling-interval.min": "0 s",
        # Measurements of a restarted job would mix two runs: let it fail instead.
        "restart-strategy.type": "none",
        "state.backend.type": "rocksdb",
        # With the default of 64 MB, a slot of 32 MB managed memory or less flushes constantly.
        **{f"state.backend.{one}.writebuffer.size": "4mb" for one in get_args(StateBackend)},
        **STATE_METRICS,
        # Otherwise full buffers hold seconds of work, during which a rate that is too high seems to be sustained.
        "taskmanager.network.memory.buffer-debloat.enabled": "true",
        "taskmanager.network.memory.buffer-debloat.target": "200 ms",
        # Answers of the REST interface are otherwise seconds old.
        "web.refresh-interval": "200",
        # Kept since Flink 2.3; earlier versions ignore it.
        "web.adaptive-scheduler.rescale-history.size": "20",
        "metrics.fetcher.update-interval": "1000",
        "pekko.ask.timeout": "60 s",  # a busy machine is slow, not broken
        "heartbeat.interval": "2000",
        "heartbeat.timeout": "15000",
        "web.submit.enable": "true",
        "web.cancel.enable": "true",
    }
)
"""Settings of every cluster; those of a profile override them."""


def check_backend(backend: StateBackend, release: Release) -> None:
    """
    Raises:
        InvalidInput: the release has no such state backend.
    """
    if backend == "forst" and release.line.startswith("1."):
        raise InvalidInput(
            f"the state backend 'forst' needs Flink 2, but Flink {release.version} is to be started; start Flink 2.3, or keep "
            "state in 'rocksdb'"
        )


@dataclass(frozen=True)
class TaskManager:
    """A TaskManager to start."""

    name: str
    """Its resource id, used by placements and the REST interface."""
    slots: int
    memory_mb: float
    """Memory of its process, MiB (Flink's taskmanager.memory.process.size)."""
    managed_mb: float | None = None
    """Managed memory of all its slots together, MiB; None: Flink's default share."""
    cores: float | None = None
    """Cores it may use, by a quota or by the budget of operators with stated costs; None: all."""

    @property
    def flink_mb(self) -> float:
        """Flink memory: process memory less the JVM's own share (`models.resources.memory`), MiB.

        Raises:
            Infeasible: the JVM's share takes it all.
        """
        return managed_memory_per_slot_mb(self.memory_mb, slots=1) / MANAGED_FRACTION

    @property
    def managed_memory_mb(self) -> float:
        return self.flink_mb * MANAGED_FRACTION if self.managed_mb is None else self.managed_mb

    @property
    def heap_mb(self) -> float:
        """The JVM's heap, for Flink's framework and the tasks.

        Raises:
            Infeasible: it is too small for them.
        """
        heap = self.flink_mb - OFF_HEAP_MB - NETWORK_MB - self.managed_memory_mb
        least = FRAMEWORK_HEAP_MB + TASK_HEAP_MB
        if heap < least:
            jvm_and_network = self.memory_mb - self.flink_mb + OFF_HEAP_MB + NETWORK_MB
            raise Infeasible(
                f"TaskManager {self.name} has {heap:.0f} MiB of its {self.memory_mb:g} left for the heap, but needs "
                f"{least:g} beside {self.managed_memory_mb:.0f} managed and {jvm_and_network:.0f} for the JVM and the "
                f"network; give it more memory, or less of it managed"
            )
        return heap

    def options(self) -> dict[str, str]:
        """Flink settings of this process; all sizes are given, so that Flink derives none."""
        overhead = self.memory_mb - self.flink_mb - METASPACE_MB
        return {
            "taskmanager.resource-id": self.name,
            "taskmanager.numberOfTaskSlots": str(self.slots),
            "taskmanager.cpu.cores": str(float(self.slots if self.cores is None else self.cores)),
            "taskmanager.memory.framework.heap.size": _size(FRAMEWORK_HEAP_MB),
            "taskmanager.memory.task.heap.size": _size(self.heap_mb - FRAMEWORK_HEAP_MB),
            "taskmanager.memory.framework.off-heap.size": _size(OFF_HEAP_MB),
            "taskmanager.memory.task.off-heap.size": _size(0),
            "taskmanager.memory.network.min": _size(NETWORK_MB),
            "taskmanager.memory.network.max": _size(NETWORK_MB),
            "taskmanager.memory.managed.size": _size(self.managed_memory_mb),
            "taskmanager.memory.jvm-metaspace.size": _size(METASPACE_MB),
            "taskmanager.memory.jvm-overhead.min": _size(overhead),
            "taskmanager.memory.jvm-overhead.max": _size(overhead),
        }

    def jvm_flags(self) -> list[str]:
        flags = ["-XX:+UseSerialGC", f"-Xmx{self.heap_mb:.0f}m"]
        flags.append(f"-XX:MaxDirectMemorySize={OFF_HEAP_MB + NETWORK_MB:.0f}m")
        flags.append(f"-XX:MaxMetaspaceSize={METASPACE_MB:.0f}m")
        return flags if self.cores is None else [*flags, f"-Dsluice.cores={self.cores!r}"]


@dataclass(frozen=True)
class Profile:
    """A cluster to start; a running cluster with an equal profile is not restarted."""

    task_managers: tuple[TaskManager, ...]
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Flink settings that override `SETTINGS`."""

    def __post_init__(self) -> None:
        names = [one.name for one in self.task_managers]
        if not names or len(set(names)) < len(names):
            raise InvalidInput(f"a cluster needs TaskManagers with different names, but got {names or 'none'}")
        wrong = [one for one in self.task_managers if one.slots < 1 or (one.cores is not None and one.cores <= 0)]
        if wrong:
            raise InvalidInput(
                f"a TaskManager needs at least 1 slot and more than 0 cores, but {wrong[0].name} has {wrong[0].slots} "
                f"slots and {wrong[0].cores} cores"
            )

    @property
    def slots(self) -> int:
        return sum(one.slots for one in self.task_managers)

    @property
    def memory_mb(self) -> float:
        """Memory of all processes together, MiB."""
        return JOB_MANAGER_MB + sum(one.memory_mb for one in self.task_managers)


def cluster_settings(profile: Profile, folder: Path, rpc_port: int, rest_port: int) -> dict[str, str]:
    """All settings that the processes of a cluster share: on loopback only, files below `folder`."""
    local = "127.0.0.1"
    places = {
        "jobmanager.rpc.address": local,
        "jobmanager.rpc.port": str(rpc_port),
        "jobmanager.bind-host": local,
        "taskmanager.host": local,
        "taskmanager.bind-host": local,
        "rest.address": local,
        "rest.bind-address": local,
        "rest.port": str(rest_port),
        "rest.bind-port": str(rest_port),
        "io.tmp.dirs": str(folder / "tmp"),
        "web.tmpdir": str(folder / "tmp"),
        "state.checkpoints.dir": (folder / "checkpoints").as_uri(),
        "state.savepoints.dir": (folder / "savepoints").as_uri(),
    }
    return {**SETTINGS, **places, **profile.settings}


def opened_modules(flink_home: Path) -> list[str]:
    """Flags that open Java 17's internals to Flink, from its own settings."""
    settings = yaml.safe_load((flink_home / "conf" / "config.yaml").read_text(encoding="utf-8"))
    return str(settings["env"]["java"]["opts"]["all"]).split()


def _size(mb: float) -> str:
    return f"{round(mb * 2**20)}b"
