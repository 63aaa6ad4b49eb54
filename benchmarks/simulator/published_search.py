"""The MST search as StreamBed's artifact runs it, where that differs from the paper and from `models.capacity.mst`.

* The first target is the mean over the whole warm-up, which begins half a minute after the job.
* A rate is offered for 60 s after a cool-down of 15 s at 200 records/s a source task. What counts is the mean of samples
  in the last 30 s, both ends included, one every `every_s` seconds: 5, but 10 for q8.
* A sample is Prometheus's `irate`, the rate between the last two scrapes. Each TaskManager is scraped every 5 s, at a time
  of its own. So samples every 10 s see half of what happened.
* A rate that was refused is not tried again, and the search ends by the clock, not by precision.

(The artifact: github.com/CloudLargeScale-UCLouvain/StreamBed, `streambed/streambed.py`, `experiments/scenarios`.)
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from models.metrics import SAMPLE_INTERVAL_S
from testbeds.simulator.kernel.arrays import LIMITED, RECORDS_OUT
from testbeds.simulator.kernel.step import advance
from testbeds.simulator.run import SimulatedRun
from testbeds.simulator.settings import Physics

VERY_HIGH_RATE: Final = 1e10
BEFORE_S, COOLDOWN_S, RATE_S, OBSERVED_S = 30.0, 15.0, 60.0, 30.0
LONGEST_DELAY_S: Final = 4.0
"""Between two targets: queries to Prometheus and messages to the sources; assumed."""
COOLDOWN_PER_SOURCE_TASK: Final = 200.0
SUSTAINED: Final = 0.99
BIN_S: Final = 0.5
SCRAPE_S: Final = 5.0
TASK_MANAGERS: Final = 8
"""Over which the source tasks of the test cluster are spread."""


@dataclass(frozen=True)
class SearchTimes:
    """What the artifact's scenarios set for a query, seconds."""

    warmup_s: float
    limit_s: float
    every_s: float


GRID: Final = {
    "q1": SearchTimes(120.0, 600.0, 5.0),
    "q2": SearchTimes(120.0, 600.0, 5.0),
    "q11": SearchTimes(180.0, 600.0, 5.0),
    "q5": SearchTimes(450.0, 890.0, 5.0),
    "q8": SearchTimes(450.0, 890.0, 10.0),
}
EXPLORATION: Final = GRID | {query: SearchTimes(300.0, 600.0, 5.0) for query in ("q1", "q2", "q11")}
"""Of q5 and q8 the limit is 900 s, which overheads of a few seconds exceed after the sixth target."""


@dataclass(frozen=True)
class Target:
    """A rate that was tried, and the mean that was seen."""

    rate: float
    seen: float

    @property
    def sustained(self) -> bool:
        return self.seen >= SUSTAINED * self.rate


class ScrapedRun:
    """A deployed job of which is seen what scrapes at different times on each TaskManager show."""

    def __init__(self, run: SimulatedRun, physics: Physics, seed: int, staggered: bool = True) -> None:
        """Args:
        staggered: whether each TaskManager is scraped at a time of its own, as Prometheus does, or all at once.
        """
        self._run, self._noise, self._step_s = run, physics.noise, physics.step_s
        self._rng = np.random.default_rng((seed, 0))
        sources = [o for o in run.plant.operators if o["source_share"] > 0]
        self._sources = np.concatenate([np.arange(o["first"], o["end"]) for o in sources])
        behind = self._rng.integers(0, round(SCRAPE_S / BIN_S), TASK_MANAGERS) * staggered
        self._behind = behind[np.arange(len(self._sources)) * TASK_MANAGERS // len(self._sources)]
        self._common = self._rng.normal(0.0, self._noise.run)
        self._drift = self._rng.normal(0.0, self._noise.task, len(run.plant.tasks))

    @property
    def source_tasks(self) -> int:
        return len(self._sources)

    def delay(self) -> float:
        """Seconds that pass by the way, a multiple of the resolution."""
        return float(self._rng.integers(0, round(LONGEST_DELAY_S / BIN_S) + 1)) * BIN_S

    def offer(self, rate: float, seconds: float) -> np.ndarray:
        """Records that each source task emitted in each `BIN_S`, float64[bins, source tasks]."""
        state = self._run.state
        state.tasks["permits"] = state.tasks["due"] = 0.0
        bins = round(seconds / BIN_S)
        factors = np.concatenate([self._factors() for _ in range(-(-bins // self._bins_per_factor))])[:bins]
        measured = advance(self._run.plant, state, LIMITED, rate, factors, round(BIN_S / self._step_s), 0)
        return np.asarray(measured[:, self._sources, RECORDS_OUT])

    @property
    def _bins_per_factor(self) -> int:
        return round(SAMPLE_INTERVAL_S / BIN_S)

    def _factors(self) -> np.ndarray:
        """On the time of a record in the next reporting interval: of the run, times one of each task that drifts."""
        kept = float(np.exp(-SAMPLE_INTERVAL_S / self._noise.task_correlation_s))
        fresh = self._rng.normal(0.0, self._noise.task * np.sqrt(1 - kept**2), len(self._drift))
        self._drift = kept * self._drift + fresh
        return np.repeat(np.exp(self._common + self._drift)[None, :], self._bins_per_factor, axis=0)

    def seen(self, emitted: np.ndarray, last_s: float, every_s: float) -> float:
        """Mean of the samples in the last seconds of an injection, records/s."""
        sums = np.vstack([np.zeros(self.source_tasks), np.cumsum(emitted, axis=0)])
        tasks, samples = np.arange(self.source_tasks), []
        for back in range(round(last_s / every_s) + 1):
            end = len(emitted) - round(back * every_s / BIN_S) - self._behind
            begin = end - round(SCRAPE_S / BIN_S)
            if np.min(begin) >= 0:
                samples.append(np.sum(sums[end, tasks] - sums[begin, tasks]) / SCRAPE_S)
        return float(np.mean(samples))


def search_as_published(run: ScrapedRun, times: SearchTimes) -> list[Target]:
    """The targets in the order in which they were tried."""
    run.offer(VERY_HIGH_RATE, BEFORE_S + run.delay())
    rate = run.seen(run.offer(VERY_HIGH_RATE, times.warmup_s), times.warmup_s, times.every_s)
    low, high, elapsed = 0.0, float("inf"), times.warmup_s
    tried: list[Target] = []
    while elapsed <= times.limit_s and rate > 0:
        run.offer(min(COOLDOWN_PER_SOURCE_TASK * run.source_tasks, rate), COOLDOWN_S + run.delay())
        tried.append(Target(rate, run.seen(run.offer(rate, RATE_S), OBSERVED_S, times.every_s)))
        elapsed += COOLDOWN_S + RATE_S
        low, high = (rate, high) if tried[-1].sustained else (low, rate)
        rate = 2 * rate if high == float("inf") else (low + high) / 2
    return tried


def mst_of(tried: list[Target]) -> float | None:
    """What was seen of the last sustained target; None without: the artifact then starts over."""
    return next((t.seen for t in reversed(tried) if t.sustained), None)
