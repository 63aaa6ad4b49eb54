"""CPU time of TaskManagers, and each task's share of it."""

from collections.abc import Mapping, Sequence

import numpy as np

from flink_client.metrics.readings import Readings
from testbeds.flink.measuring.counters import Counter


class CpuMeter:
    """Reads the CPU time of TaskManagers during a measurement."""

    def __init__(self, readings: Readings, task_managers: Sequence[str]) -> None:
        self._readings = readings
        self._counters = {name: Counter() for name in task_managers}

    def read(self) -> None:
        """Read all once.

        Raises:
            SluiceError: a TaskManager is gone, or was restarted.
        """
        for name, counter in self._counters.items():
            for time_s, cpu_s in self._readings.cpu_s(name):
                counter.read(time_s, cpu_s, refreshed=cpu_s not in counter.values[-1:])

    def covers(self, begin: float, end: float) -> bool:
        """Whether all are known at both times (`time.monotonic`)."""
        return all(counter.covers(begin, end) for counter in self._counters.values())

    @property
    def has_read_all(self) -> bool:
        return all(counter.times for counter in self._counters.values())

    def increments(self, boundaries: Sequence[float]) -> dict[str, np.ndarray]:
        """CPU seconds of each TaskManager between consecutive times, float64[intervals]."""
        grown = {name: counter.increments(boundaries) for name, counter in self._counters.items()}
        for counter in self._counters.values():
            counter.forget_before(boundaries[-1])
        return grown


def shared_out(
    cpu_s: Mapping[str, np.ndarray],
    busy_s: Mapping[tuple[str, int], np.ndarray],
    workers: Mapping[tuple[str, int], str],
) -> dict[tuple[str, int], np.ndarray]:
    """CPU seconds of each task: its TaskManager's, divided by busy time, and at most the busy time.

    A task is one thread, so it cannot have used more CPU time than it was busy; the rest of a TaskManager's CPU time
    (compilation, garbage collection, metrics) belongs to no task. Where readings are interpolated, either may be a little
    below 0: that is none.

    Args:
        cpu_s: by TaskManager, float64[intervals].
        busy_s: by task, float64[intervals].
        workers: TaskManager of each task.
    """
    together: dict[str, np.ndarray] = {}
    busy_s = {task: np.maximum(busy, 0.0) for task, busy in busy_s.items()}
    for task, busy in busy_s.items():
        together[workers[task]] = together.get(workers[task], np.zeros_like(busy)) + busy
    share = {
        name: np.clip(np.divide(cpu_s[name], busy, out=np.zeros_like(busy), where=busy > 0), 0.0, 1.0)
        for name, busy in together.items()
    }
    return {task: busy * share[workers[task]] for task, busy in busy_s.items()}
