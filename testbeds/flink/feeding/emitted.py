"""Records emitted by a job's source tasks, from their own reports."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from testbeds.feeding.control import SourceControl
from testbeds.flink.measuring.counters import Counter
from testbeds.flink.submission import Deployed

Task = tuple[str, int]
"""Source and number."""


@dataclass
class _Emitting:
    emitted: Counter = field(default_factory=Counter)
    """Records since the task was started."""
    owed: int = 0
    """Records pending at its last report."""
    since: float | None = None
    """When the order in force arrived at it, `time.monotonic`: the earliest time its reports allow; None before."""


class SourceMeter:
    """Collects the reports of source tasks; counts continue across orders."""

    def __init__(self, control: SourceControl, names: Mapping[str, str], tasks: Mapping[str, int]) -> None:
        """
        Args:
            names: by which the rate of each source is set.
            tasks: of each source.
        """
        self._control, self._names = control, names
        self._tasks = {(source, task): _Emitting() for source in names for task in range(tasks[source])}
        self._order = ""

    @classmethod
    def of_job(cls, control: SourceControl, deployed: Deployed) -> Self:
        """Of the sources of a job."""
        return cls(control, deployed.sources, {name: deployed.vertices[name].parallelism for name in deployed.sources})

    def follow(self, order: str) -> None:
        """From now on, only reports of tasks that follow this order count."""
        self._order = order
        for task in self._tasks.values():
            task.since = None

    @property
    def all_follow(self) -> bool:
        """Whether every task has reported that it follows the order in force."""
        return all(task.since is not None for task in self._tasks.values())

    @property
    def followed_since(self) -> float:
        """When the order in force had arrived at every task (`time.monotonic`); infinite until then."""
        return max(math.inf if task.since is None else task.since for task in self._tasks.values())

    def read(self) -> None:
        """Record the last report of each task.

        Raises:
            SluiceError: a count went backwards, for example since a task was restarted.
        """
        for source, name in self._names.items():
            for number, report in self._control.reports(name).items():
                task = self._tasks.get((source, number))
                if task is None or report.order != self._order:
                    continue
                since = report.heard_at - report.seconds
                task.since = since if task.since is None else min(task.since, since)
                when = task.since + report.seconds
                if not task.emitted.times or when > task.emitted.times[-1]:
                    task.emitted.read(when, report.emitted_in_all, refreshed=True)
                    task.owed = report.pending

    def covers(self, begin: float, end: float) -> bool:
        """Whether the counts of all tasks are known at both times (`time.monotonic`)."""
        return all(task.emitted.covers(begin, end) for task in self._tasks.values())

    def increments(self, boundaries: Sequence[float]) -> dict[Task, np.ndarray]:
        """Records that each task emitted from each time to the next, float64[boundaries - 1]."""
        return {name: task.emitted.increments(boundaries) for name, task in self._tasks.items()}

    def positions(self, times: Sequence[float] | np.ndarray) -> dict[str, np.ndarray]:
        """By source: records that its tasks had emitted at each time since they were started, float64[times]."""
        found = {source: np.zeros(len(times)) for source in self._names}
        for (source, _), task in self._tasks.items():
            found[source] += np.interp(times, task.emitted.times, task.emitted.values)
        return found

    def last(self) -> dict[str, float]:
        """By source: records that its tasks had emitted by their last reports; the total once the sources are idle."""
        found = dict.fromkeys(self._names, 0.0)
        for (source, _), task in self._tasks.items():
            found[source] += task.emitted.values[-1] if task.emitted.values else 0.0
        return found

    def owed(self) -> dict[Task, int]:
        """Records pending at each task by its last report."""
        return {name: task.owed for name, task in self._tasks.items()}

    def forget_before(self, time_s: float) -> None:
        """Drop data that is not needed for times from `time_s` on."""
        for task in self._tasks.values():
            task.emitted.forget_before(time_s)
