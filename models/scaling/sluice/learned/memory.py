"""Memory before tasks: an operator whose state does not fit its memory needs memory, not tasks (Justin section 4).

Where an operator would get more tasks while its state accesses go to disk (hit rate or latency beyond the thresholds of
Justin section 5), it gets the next level of managed memory instead, and keeps its tasks. The effect is measured: if its
tasks take less than `LEAST_IMPROVEMENT` more, the level is undone with the next rescale, and not tried again.
Operators without state get no managed memory.
"""

from dataclasses import dataclass
from typing import Final

from models.scaling.rates import OperatorMetrics, Rates
from models.scaling.sluice.settings import SluiceSettings

LEAST_IMPROVEMENT: Final = 0.1


@dataclass(frozen=True)
class _Trial:
    """A level that an operator was given."""

    before_mb: float
    task_seconds: float
    """Useful task-seconds per source record before."""


class Memory:
    """Memory levels tried, and their effects."""

    def __init__(self, settings: SluiceSettings) -> None:
        self._settings = settings
        self._stateful: set[str] = set()
        self._trials: dict[str, _Trial] = {}
        self._futile: dict[str, float] = {}

    def observe(self, rates: Rates, task_seconds: dict[str, float]) -> None:
        """Add the measurements of an interval; `task_seconds` are those of the operators measured reliably."""
        self._stateful |= {name for name, metrics in rates.operators.items() if _keeps_state(metrics)}
        for name in list(self._trials.keys() & task_seconds.keys()):
            trial = self._trials.pop(name)
            if task_seconds[name] > trial.task_seconds * (1 - LEAST_IMPROVEMENT):
                self._futile[name] = trial.before_mb

    def wanted(self, rates: Rates, tasks: dict[str, int]) -> dict[str, float]:
        """Managed memory of a task, MiB, where it is to change."""
        changed = {
            name: 0.0
            for name, metrics in rates.operators.items()
            if metrics.memory_mb and name not in self._stateful and not _keeps_state(metrics)
        }
        for name in self._stateful & tasks.keys():
            level = self._level(name, rates.operators[name], tasks[name])
            if level is not None:
                changed[name] = level
        return changed

    def try_levels(self, before: Rates, wanted: dict[str, float], task_seconds: dict[str, float]) -> None:
        """Remember which of the `wanted` levels are raised, to judge them later."""
        for name, level in wanted.items():
            now = before.operators[name].memory_mb
            if now is not None and level > now:
                self._trials[name] = _Trial(now, task_seconds[name])

    def _level(self, name: str, metrics: OperatorMetrics, tasks: int) -> float | None:
        if metrics.memory_mb is None:
            return None
        if name in self._futile:
            return self._futile[name]
        higher = [level for level in self._settings.memory_levels_mb if level > metrics.memory_mb * (1 + 1e-9)]
        if tasks <= metrics.parallelism or not higher or not self._lacks_memory(metrics):
            return None
        return higher[0]

    def _lacks_memory(self, metrics: OperatorMetrics) -> bool:
        hit_rate, latency = metrics.cache_hit_rate, metrics.state_latency_s
        return (hit_rate is not None and hit_rate < self._settings.least_hit_rate) or (
            latency is not None and latency > self._settings.most_state_latency_s
        )


def _keeps_state(metrics: OperatorMetrics) -> bool:
    return bool(metrics.state_mb) or metrics.state_latency_s is not None or metrics.cache_hit_rate is not None
