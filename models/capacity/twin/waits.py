"""For how long a record makes its task wait outside the job, from samples: busy time that is neither CPU time nor state access.

Notation:

    K        cores that the tasks of a worker can use
    u, n     cores that they used in a window, and how many tasks they are
    rho      u / K, the use of the cores; 0 where n <= K, as then each task has a core whenever it wants one
    s_i      busy seconds of a record of operator i in a window, the time in which it accesses state left out
    c_i      its CPU seconds

A task that lacks a core is busy without CPU time, too, but only while all cores are in use:

    w_i = median of s_i - c_i    over the windows with rho <= max(FREE, least rho)                (1)
    w_i counts where  w_i > max(LEAST_WAIT, median of rho) median of s_i                          (2)

Tasks with work at random times that share one core equally take 1 / (1 - rho) as long as alone (M/G/1 with processor
sharing), so that up to the share rho of their busy time is a lack of cores; with more cores it is less. What (2) leaves out
stays a lack of cores.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from models.capacity.calibration import SHORT_OF_CORES, WorkerWindow

FREE: Final = 0.5
"""Use of its cores up to which a worker's tasks rarely lack one. Where cores are not stated, a job may use most of
what it was ever seen to use in all windows; then (2) decides by the least used."""
LEAST_WAIT: Final = 1 - SHORT_OF_CORES
"""Share of the busy time: unit costs and counters are off by as much."""


@dataclass(frozen=True)
class WindowOn:
    """A window of a worker, and the cores that its tasks could use."""

    window: WorkerWindow
    cores: float

    @property
    def use(self) -> float:
        """rho."""
        return 0.0 if self.window.tasks <= self.cores else self.window.cores / self.cores


def external_wait_s(windows: Sequence[WindowOn], cpu_s: float, seen_cpu_s: float, operator: str) -> float:
    """w_i, seconds per record in; 0 where it is a small share of the busy time, or no window times it.

    Args:
        cpu_s: c_i, as fitted to what workers used.
        seen_cpu_s: c_i as in the samples. The larger of both decides whether it counts, since one of them may be far too small.
    """
    known = [
        (one.window.threads[operator] / one.window.rates[operator], one.use)
        for one in windows
        if operator in one.window.threads and one.window.rates[operator] > 0
    ]
    most_use = max(FREE, min((use for _, use in known), default=0.0))
    free = [(busy_s, use) for busy_s, use in known if use <= most_use]
    if not free:
        return 0.0
    busy_s, use = (float(median) for median in np.median(free, axis=0))
    counts = busy_s - max(cpu_s, seen_cpu_s) > max(LEAST_WAIT, use) * busy_s
    return busy_s - cpu_s if counts else 0.0


def cores_known(windows: Sequence[WorkerWindow], stated: Mapping[str, float]) -> list[WindowOn]:
    """Each window with the cores of its worker: those stated, else the most that was used on any worker without, and at least
    one, as Flink counts no fewer processors."""
    unknown = max([1.0, *(w.cores for w in windows if w.worker not in stated)])
    return [WindowOn(w, stated.get(w.worker, unknown)) for w in windows]
