"""Measuring one configuration for a calibration; each result is stored at once."""

from collections.abc import Mapping
from dataclasses import dataclass

from models.capacity.mst import MstSearch, Phase
from models.errors import SluiceError
from models.job import Job
from models.wording import amount
from pipelines.calibration.configurations import one_task_each
from pipelines.calibration.request import CalibrationRequest, MeasuredConfiguration
from pipelines.measuring.estimate import samples_of, search_mst, source_rates_per_task
from pipelines.progress import Progress
from pipelines.store.digests import digest
from pipelines.store.samples import write_samples
from pipelines.store.workspace import Workspace
from testbeds.protocol import Configuration, MeasuredWindow, Testbed
from testbeds.repeating import measured
from testbeds.steady import is_steady

REHEARSAL_WINDOW_S = 10.0
PROBE_RATE = 1e9
"""Far beyond the capacity of the first configuration; sources emit as much as backpressure allows."""
WARMUP_MARGIN = 2.0
"""The rate of the warm-up, as a multiple of the expected rate."""


@dataclass
class Measurer:
    """Measures configurations of one job on one testbed, once each."""

    job: Job
    testbed: Testbed
    request: CalibrationRequest
    workspace: Workspace
    progress: Progress
    name: str
    """Name of the calibration; its runs have this name and a number."""
    warmed_up: bool = False

    def measure(self, number: int, parallelism: Mapping[str, int], expected: float | None) -> MeasuredConfiguration:
        """The MST of a configuration, measured now or before.

        Args:
            expected: expected MST, records/s; None if unknown.

        Raises:
            SluiceError: no rate was sustained, or the testbed failed each time.
        """
        inputs = {
            "job": digest(self.job),
            "request": digest(self.request),
            "cluster": digest(self.testbed.cluster),
            "parallelism": digest(dict(parallelism)),
        }
        key = f"calibrations/{self.job.name}/{self.name}/measured/{number:02}.json"
        return self.workspace.once(
            key, inputs, MeasuredConfiguration, lambda: self._measure(number, parallelism, expected)
        )

    def _warm_up(self) -> None:
        """Run until the throughput grows no more: by then the processes have compiled the program.

        Each operator has a task on as many workers as have room.
        """
        self.warmed_up = True
        if self.request.rehearsal_s == 0:
            return
        self.progress.say(f"calibrate: warming up, at most {self.request.rehearsal_s:g} s, until code is compiled")
        limits, operators = self.testbed.limits, self.job.scaled_operators
        most = min(len(self.testbed.cluster.workers), limits.max_task_slots // len(operators), self.request.most_tasks)
        spread = {o.name: min(max(most, 1), o.max_parallelism or max(most, 1)) for o in operators}
        tasks = one_task_each(self.job, limits, self.request) | spread
        configuration = Configuration(tasks, self.request.memory_mb)
        with self.testbed.deploy(self.job, configuration, run=f"{self.name}-rehearsal", seed=self.request.seed) as run:
            rates: list[float] = []
            while not is_steady(rates) and len(rates) * REHEARSAL_WINDOW_S < self.request.rehearsal_s:
                rates.append(run.inject(PROBE_RATE, REHEARSAL_WINDOW_S, "warmup").achieved_rate)
        self.progress.say(
            f"calibrate: warmed up for {run.elapsed_s:g} s, up to {amount(max(rates, default=0.0))} records/s"
        )

    def _measure(self, number: int, parallelism: Mapping[str, int], expected: float | None) -> MeasuredConfiguration:
        if not self.warmed_up:
            self._warm_up()
        rate = PROBE_RATE if expected is None else WARMUP_MARGIN * expected
        settings = self.request.mst.model_copy(update={"warmup_rate": rate})
        run = f"{self.name}-{number:02}"
        search, windows, measured_s = measured(
            self.testbed,
            self.job,
            Configuration(dict(parallelism), self.request.memory_mb),
            lambda deployed: (*search_mst(deployed, settings), deployed.elapsed_s),
            run=run,
            seed=self.request.seed,
            say=lambda what: self.progress.say(f"calibrate: {what}"),
        )
        if search.mst is None or not _has_bounds(search):
            raise SluiceError(
                f"the MST of {dict(parallelism)} was not found: {search.reason}; measure again, on a machine that is less busy"
            )
        write_samples(self.workspace, samples_of(windows))
        return MeasuredConfiguration(
            run=run,
            parallelism=dict(parallelism),
            memory_mb=self.request.memory_mb,
            mst=search.mst,
            trials=search.history,
            source_rate_per_task=source_rates_per_task(self.job, _last_observed(windows).samples),
            measured_s=measured_s,
        )


def _has_bounds(search: MstSearch) -> bool:
    """Whether one rate was sustained and another was not."""
    return len({trial.sustained for trial in search.history}) == 2


def _last_observed(windows: list[MeasuredWindow]) -> MeasuredWindow:
    return next(w for w in reversed(windows) if w.samples["phase"][0].as_py() == Phase.OBSERVE)
