"""A deployed job on the simulator: time passes in `inject` and `serve`, as fast as it can be computed."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from models.closing import Closing
from models.errors import SluiceError
from models.metrics import SAMPLE_INTERVAL_S
from testbeds.protocol import Configuration, MeasuredWindow, Rescale, Served, sample_intervals, served_intervals
from testbeds.simulator.activity import activity
from testbeds.simulator.kernel import arrays
from testbeds.simulator.kernel.arrays import EVENT_CLOCK, LIMITED, LOGGED, WALL_CLOCK, Plant, fresh_state
from testbeds.simulator.kernel.step import advance, drain
from testbeds.simulator.layout.buffers import BYTES_PER_MB
from testbeds.simulator.rescaling import carry_over, state_bytes, transfer_s
from testbeds.simulator.samples import TaskColumns, samples
from testbeds.simulator.settings import Physics

INTERVALS_AT_ONCE = 240
"""Reporting intervals computed in one call: bounds the memory for long injections at many tasks."""


@dataclass(frozen=True)
class SimulatedDeployment:
    """A configuration, laid out on a cluster."""

    configuration: Configuration
    plant: Plant
    columns: TaskColumns


class SimulatedRun(Closing):
    """Implements `testbeds.protocol.ElasticRun`."""

    def __init__(
        self,
        lay_out: Callable[[Configuration], SimulatedDeployment],
        configuration: Configuration,
        physics: Physics,
        seed: int,
    ) -> None:
        self._lay_out, self._physics = lay_out, physics
        self._deployed = lay_out(configuration)
        self._rng = np.random.default_rng(seed)
        self.state = fresh_state(self.plant, self._rng)
        self._noise = _Noise(physics, len(self.plant.tasks), self._rng)
        self._intervals = 0
        self._down_steps = 0
        self._rate: float | None = None
        self._arriving = 0.0
        self._closed = False

    @property
    def plant(self) -> Plant:
        return self._deployed.plant

    @property
    def configuration(self) -> Configuration:
        """The current configuration, or the next one while the job is down."""
        return self._deployed.configuration

    @property
    def machine_slowdown(self) -> float:
        """Factor on the CPU time of a record that all tasks of this run have in common (`Noise.run`)."""
        return self._noise.common

    @property
    def elapsed_s(self) -> float:
        """Time since the job was requested, seconds, including its deployment."""
        return self._physics.deploy_s + self._intervals * SAMPLE_INTERVAL_S

    def inject(self, rate: float, seconds: float, phase: str) -> MeasuredWindow:
        """Offer `rate` records/s for `seconds`; see `testbeds.protocol.Run.inject`.

        Records in the log stay there meanwhile. After a rescale, the rate is offered once the job runs again.

        Raises:
            InvalidInput: the rate is not above 0, or `seconds` is not a multiple of the reporting interval.
            SluiceError: the run was closed.
        """
        self._check_open()
        intervals = sample_intervals(rate, seconds)
        self._wait_until_up()
        if rate != self._rate:
            self.state.tasks["permits"] = 0.0
            self.state.tasks["due"] = 0.0
            self._rate = rate
        tables, taken = [], 0.0
        for first in range(0, intervals, INTERVALS_AT_ONCE):
            start, part = self.elapsed_s, min(INTERVALS_AT_ONCE, intervals - first)
            measured = self._advance(LIMITED, rate, part)
            tables.append(samples(self._deployed.columns, measured, start, phase))
            taken += float(np.sum(measured[:, self._deployed.columns.is_source, arrays.RECORDS_IN]))
        pending = float(np.sum(np.maximum(self.state.tasks["due"], 0.0)))
        return MeasuredWindow(rate, taken / seconds, seconds, pending, pa.concat_tables(tables))

    def serve(self, rate: float, seconds: float) -> Served:
        """Let `rate` records/s arrive for `seconds`; see `testbeds.protocol.ElasticRun.serve`.

        Raises:
            InvalidInput: the rate is below 0, or `seconds` is not a multiple of the reporting interval.
            SluiceError: the run was closed.
        """
        self._check_open()
        intervals = served_intervals(rate, seconds)
        self._let_arrive(rate)
        down_s = min(self._down_steps * self._physics.step_s, seconds)
        measured = self._advance(LOGGED, rate, intervals)
        running_s, columns = seconds - down_s, self._deployed.columns
        of_sources = measured[:, columns.is_source]
        return Served(
            seconds=float(seconds),
            running_s=running_s,
            arrived=np.full(intervals, rate * SAMPLE_INTERVAL_S),
            read=of_sources[:, :, arrays.RECORDS_IN].sum(axis=1),
            lag=np.maximum(of_sources[:, :, arrays.LAG], 0.0).sum(axis=1),
            activity=activity(columns, self.plant, self.state, measured, running_s) if running_s > 0 else {},
        )

    def rescale(self, configuration: Configuration) -> Rescale:
        """Stop and start again with another configuration, as `Physics.rescaling` says.

        See `testbeds.protocol.ElasticRun.rescale`. A rescale of a job that is still down begins when it is up again.
        """
        self._check_open()
        settings, step_s = self._physics.rescaling, self._physics.step_s
        after = self._lay_out(configuration)
        most = round(settings.stop_timeout_s / step_s)
        drained_s = drain(self.plant, self.state, self._noise.factors(1)[0], most) * step_s
        saving = settings.save_bytes_per_s
        save_s = 0.0 if saving is None else transfer_s(self.plant, self.state, saving)
        state = carry_over(self.plant, self.state, after.plant, settings, self._rng)
        restore_s = transfer_s(after.plant, state, settings.restore_bytes_per_s)
        kept = float(np.sum(state_bytes(self.plant, self.state)))
        self._deployed, self.state = after, state
        self._noise.redeploy(len(after.plant.tasks))
        stopped_s = (drained_s if settings.drain_counts else 0.0) + save_s
        self._down_steps += round((stopped_s + settings.restart_s + restore_s) / step_s)
        return Rescale(downtime_s=self._down_steps * step_s, state_mb=kept / BYTES_PER_MB)

    def _check_open(self) -> None:
        if self._closed:
            raise SluiceError("a closed run takes no rate and no configuration; deploy the job again")

    def _wait_until_up(self) -> None:
        """Let the downtime of the job pass, while no records arrive in the log."""
        if self._down_steps:
            self._let_arrive(0.0)
            self._advance(LOGGED, 0.0, -(-self._down_steps // self._physics.steps_per_interval))

    def _let_arrive(self, rate: float) -> None:
        """Record that records arrive at another rate from now on, and drop what all sources have read."""
        if rate == self._arriving:
            return
        self._arriving, log = rate, self.state.log
        unread = np.searchsorted(log[:, 0], self.state.clock[EVENT_CLOCK], side="right") - 1
        now = [self.state.clock[WALL_CLOCK], self.state.came[0]]
        self.state = self.state._replace(log=np.vstack([log[max(unread, 0) :], now]))

    def _advance(self, reads: int, rate: float, intervals: int) -> np.ndarray:
        """float64[intervals, tasks, MEASURES]"""
        steps = self._physics.steps_per_interval
        measured = advance(
            self.plant, self.state, reads, float(rate), self._noise.factors(intervals), steps, self._down_steps
        )
        self._down_steps = max(self._down_steps - intervals * steps, 0)
        self._intervals += intervals
        return np.asarray(measured)

    def close(self) -> None:
        """Close the run; it takes no more rates."""
        self._closed = True


class _Noise:
    """Factors on the CPU time of a record: one per run, times one per task that drifts over time (AR(1))."""

    def __init__(self, physics: Physics, tasks: int, rng: np.random.Generator) -> None:
        noise = physics.noise
        self._rng = rng
        self._common = rng.normal(0.0, noise.run) if noise.run > 0 else 0.0
        self._deviation = noise.task
        self._memory = float(np.exp(-SAMPLE_INTERVAL_S / noise.task_correlation_s))
        self.redeploy(tasks)

    @property
    def common(self) -> float:
        return float(np.exp(self._common))

    def redeploy(self, tasks: int) -> None:
        """Restart with new tasks on the same machines: the deviations of tasks are drawn again."""
        self._drift = self._rng.normal(0.0, 1.0, tasks) * self._deviation

    def factors(self, intervals: int) -> np.ndarray:
        """float64[intervals, tasks]; the logarithm has the standard deviations of the settings."""
        fresh = self._rng.normal(0.0, 1.0, (intervals, len(self._drift)))
        fresh *= self._deviation * np.sqrt(1 - self._memory**2)
        logs = np.empty_like(fresh)
        for i in range(intervals):
            self._drift = self._memory * self._drift + fresh[i]
            logs[i] = self._drift
        return np.asarray(np.exp(self._common + logs))
