"""Give a budget its best configuration and measure it: StreamBed's Configuration Optimizer (section 5)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from models.capacity.bids2 import bids2
from models.capacity.diagnosis.diagnose import diagnose
from models.capacity.mst import MstSettings
from models.capacity.observation import Budget, Observation, OperatorRates
from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job
from models.wording import amount
from pipelines.measuring.bound_facts import bound_facts, limit_window
from pipelines.measuring.estimate import OBSERVE, drained_mst, mst_settings, operator_rates, samples_of, search_mst
from testbeds.protocol import Configuration, Testbed
from testbeds.repeating import measured

SOURCE_MARGIN = 2.0
"""Sources can emit this multiple of the expected rate, so that they never limit the job."""
SOURCES_FULL = 0.9
"""Share of the rate that a source's tasks can emit, from which the source is assumed to limit the job."""


@dataclass(frozen=True)
class Measurement:
    """An observation with its samples."""

    observation: Observation
    samples: pa.Table


@dataclass(frozen=True)
class Optimizer:
    """Measures budgets of one job on one testbed."""

    job: Job
    testbed: Testbed
    source_rate_per_task: Mapping[str, float]
    """Records/s of useful time that one task of each source emits, from the profile."""
    profiled: tuple[OperatorRates, ...]
    """Rates of one task of each operator in the profile: the expected rates of a single-task run."""
    settings: MstSettings | None = None
    """Durations and precision of the search; by default those for the job. The expected rate sets the warm-up rate."""
    by_drain: bool = False
    """Whether the job is offered more than it takes, in place of a search."""
    say: Callable[[str], None] = lambda what: None
    """Called with remarks for people, for example when a measurement is repeated."""

    @property
    def fewest_task_slots(self) -> int:
        """One task for each operator but the sources: the single-task configuration."""
        return len(self.job.scaled_operators)

    @property
    def memory_levels_mb(self) -> tuple[float, ...]:
        """TaskManager memory sizes to measure with, MiB: the testbed's sizes that the job's file lists, or all.

        Raises:
            InvalidInput: the testbed has none of them.
        """
        offered, wanted = self.testbed.limits.memory_levels_mb, self.job.memory_levels_mb
        levels = tuple(level for level in offered if not wanted or level in wanted)
        if not levels:
            raise InvalidInput(
                f"memory_levels_mb of job {self.job.name!r} must hold a size that the testbed {self.testbed.name!r} has: "
                f"it has {', '.join(f'{m:g}' for m in offered)} MiB, the job asks for {', '.join(f'{m:g}' for m in wanted)}"
            )
        return levels

    def measure_single_task(self, memory_mb: float, run: str, seed: int) -> Measurement:
        """Measure the configuration where each operator has a single task; its rates feed BIDS2."""
        single = bids2(self.profiled, self.fewest_task_slots)
        return self._measure(single.parallelism, memory_mb, single.source_rate, None, run, seed)

    def measure(self, budget: Budget, single_task: tuple[OperatorRates, ...], run: str, seed: int) -> Measurement:
        """Find the best parallelism for a budget from the rates of a single-task run, and measure its MST.

        Raises:
            Infeasible: the budget has fewer slots than the job has operators, or more than the testbed has.
        """
        best = bids2(single_task, budget.task_slots, self.job.max_parallelism)
        return self._measure(best.parallelism, budget.memory_mb, best.source_rate, best.source_rate, run, seed)

    def _measure(
        self, tasks: Mapping[str, int], memory_mb: float, expected: float, bids2_rate: float | None, run: str, seed: int
    ) -> Measurement:
        slots = sum(tasks.values())
        if slots > self.testbed.limits.max_task_slots:
            raise Infeasible(
                f"a configuration must fit the testbed's {self.testbed.limits.max_task_slots} task slots, but needs "
                f"{slots}; lower the most task slots to explore, or use a larger testbed"
            )
        parallelism = {**self.source_tasks(SOURCE_MARGIN * expected), **tasks}
        configuration = Configuration(parallelism=parallelism, memory_mb=memory_mb)
        settings = (self.settings or mst_settings(self.job)).model_copy(
            update={"warmup_rate": SOURCE_MARGIN * expected}
        )
        measure = drained_mst if self.by_drain else search_mst
        search, windows, elapsed = measured(
            self.testbed,
            self.job,
            configuration,
            lambda deployed: (*measure(deployed, settings), deployed.elapsed_s),
            run=run,
            seed=seed,
            say=self.say,
        )
        if search.mst is None:
            raise SluiceError(
                f"no rate was sustained by {dict(tasks)} with {memory_mb:g} MiB per TaskManager ({search.reason}); give the "
                "TaskManagers more memory, or measure for longer"
            )
        self._report_full_sources(run, parallelism, search.mst)
        observed = [w for w in windows if w.samples.num_rows and w.samples["phase"][0].as_py() == OBSERVE]
        rates = operator_rates(self.job, observed[-1].samples)
        facts = bound_facts(self.job, limit_window(observed), {w.name: w for w in self.testbed.cluster.workers})
        observation = Observation(
            run=run,
            task_slots=slots,
            memory_mb=memory_mb,
            parallelism=parallelism,
            mst=search.mst,
            operators=rates,
            bids2_rate=bids2_rate,
            measured_s=elapsed,
            facts=facts,
            bound_by=diagnose(facts),
        )
        return Measurement(observation, samples_of(windows))

    def _report_full_sources(self, run: str, parallelism: Mapping[str, int], mst: float) -> None:
        """Warn if the MST may be the rate of the sources, since the testbed has room for few of their tasks."""
        for source in self.job.sources:
            emits = parallelism[source.name] * self.source_rate_per_task[source.name]
            if mst * source.rate_share > SOURCES_FULL * emits:
                self.say(
                    f"{run}: {amount(mst)} records/s is all that {source.name!r} emits with its tasks "
                    f"({parallelism[source.name]}); the job takes at least as much, and its plan may be larger than needed"
                )

    def source_tasks(self, rate: float) -> dict[str, int]:
        """Tasks that each source needs to emit its share of `rate` records/s, within its limit and the testbed's room."""
        wanted = {
            source.name: max(1, math.ceil(rate * source.rate_share / self.source_rate_per_task[source.name]))
            for source in self.job.sources
        }
        limits = {source.name: source.max_parallelism or wanted[source.name] for source in self.job.sources}
        wanted = {name: min(tasks, limits[name]) for name, tasks in wanted.items()}
        most = self.testbed.limits.max_source_tasks
        return wanted if most is None or sum(wanted.values()) <= most else _within(most, wanted)


def _within(most: int, wanted: Mapping[str, int]) -> dict[str, int]:
    """A task for each, and what is left of `most` in proportion to what more is wanted."""
    more, left = sum(wanted.values()) - len(wanted), max(0, most - len(wanted))
    given = {name: 1 + (tasks - 1) * left // max(1, more) for name, tasks in wanted.items()}
    short = sorted((name for name, tasks in wanted.items() if given[name] < tasks), key=lambda n: -wanted[n])
    for name in short[: max(0, most - sum(given.values()))]:
        given[name] += 1
    return given
