"""A deployed job on the simulator: time passes in `inject`, as fast as the machine can compute it."""

from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from models.errors import SluiceError
from models.metrics import SAMPLE_INTERVAL_S
from testbeds.protocol import Window, sample_intervals
from testbeds.simulator import arrays
from testbeds.simulator.arrays import Plant, fresh_state
from testbeds.simulator.kernel import advance
from testbeds.simulator.samples import TaskColumns, samples
from testbeds.simulator.settings import Physics

INTERVALS_AT_ONCE = 240
"""Reporting intervals computed in one call: bounds the memory for long injections at many tasks."""


class SimulatedRun:
    """Implements `testbeds.protocol.Run`."""

    def __init__(self, plant: Plant, columns: TaskColumns, physics: Physics, seed: int) -> None:
        self.plant, self._columns, self._physics = plant, columns, physics
        self._rng = np.random.default_rng(seed)
        self.state = fresh_state(plant, self._rng)
        self._noise = _Noise(physics, len(plant.tasks), self._rng)
        self._intervals = 0
        self._rate: float | None = None
        self._closed = False

    @property
    def elapsed_s(self) -> float:
        """Time since the job was asked for, seconds; the deployment itself is counted."""
        return self._physics.deploy_s + self._intervals * SAMPLE_INTERVAL_S

    def inject(self, rate: float, seconds: float, phase: str) -> Window:
        """Offer `rate` records/s for `seconds`; see `testbeds.protocol.Run.inject`.

        Raises:
            InvalidInput: the rate is not above 0, or `seconds` is not a multiple of the reporting interval.
            SluiceError: the run was closed.
        """
        if self._closed:
            raise SluiceError("a closed run cannot be injected into; deploy the job again")
        intervals = sample_intervals(rate, seconds)
        if rate != self._rate:
            self.state.tasks["permits"] = 0.0
            self.state.tasks["due"] = 0.0
            self._rate = rate
        tables, emitted = [], 0.0
        for first in range(0, intervals, INTERVALS_AT_ONCE):
            table, part = self._advance(rate, min(INTERVALS_AT_ONCE, intervals - first), phase)
            tables.append(table)
            emitted += part
        pending = float(np.sum(np.maximum(self.state.tasks["due"], 0.0)))
        return Window(rate, emitted / seconds, seconds, pending, pa.concat_tables(tables))

    def _advance(self, rate: float, intervals: int, phase: str) -> tuple[pa.Table, float]:
        measured = advance(
            self.plant, self.state, rate, self._noise.factors(intervals), self._physics.steps_per_interval
        )
        start = self.elapsed_s
        self._intervals += intervals
        emitted = float(np.sum(measured[:, self._columns.is_source, arrays.RECORDS_OUT]))
        return samples(self._columns, measured, start, phase), emitted

    def close(self) -> None:
        """Nothing can be injected any more."""
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Noise:
    """Factors on the CPU time of a record: one of the run, times one of each task that drifts (AR(1))."""

    def __init__(self, physics: Physics, tasks: int, rng: np.random.Generator) -> None:
        noise = physics.noise
        self._rng = rng
        self._common = rng.normal(0.0, noise.run) if noise.run > 0 else 0.0
        self._deviation = noise.task
        self._memory = float(np.exp(-SAMPLE_INTERVAL_S / noise.task_correlation_s))
        self._drift = rng.normal(0.0, 1.0, tasks) * noise.task

    def factors(self, intervals: int) -> np.ndarray:
        """float64[intervals, tasks]; the logarithm has the standard deviations of the settings."""
        fresh = self._rng.normal(0.0, 1.0, (intervals, len(self._drift)))
        fresh *= self._deviation * np.sqrt(1 - self._memory**2)
        logs = np.empty_like(fresh)
        for i in range(intervals):
            self._drift = self._memory * self._drift + fresh[i]
            logs[i] = self._drift
        return np.asarray(np.exp(self._common + logs))
