"""The conformance suite of testbeds: subclass it to test a new testbed.

    class TestMine(TestbedConformance):
        @pytest.fixture
        def testbed(self) -> Testbed:
            return Mine(...)

Override `job` and `configuration` if the small job below cannot run there. A testbed in real time subclasses only some
parts of the suite, with shorter windows, and states the precision of its clocks.
"""

import math
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from models.capacity.mst import MstSearch
from models.dataflow import Partitioning
from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job
from models.metrics import SAMPLE_COLUMNS, SAMPLE_INTERVAL_S, SAMPLE_KEY, TIME_SHARES_TOLERANCE, ColumnType
from testbeds.protocol import SAMPLE_SCHEMA, Configuration, MeasuredWindow, Run, Testbed
from testbeds.suite import OVERLOAD, DeployedSuite, saturated_rate, windows_of

MUCH_OF_A_RATE = 0.99
"""StreamBed section 4: a rate is sustained if this share of it is achieved."""


class RefusalConformance(DeployedSuite):
    """Limits, and configurations that are refused before the start."""

    def test_its_limits_are_usable(self, testbed: Testbed) -> None:
        limits = testbed.limits
        assert testbed.name
        assert 1 <= limits.max_task_slots <= testbed.cluster.slots
        assert 1 <= limits.slots_per_worker <= testbed.cluster.slots
        assert limits.memory_levels_mb and limits.memory_levels_mb[0] > 0
        assert list(limits.memory_levels_mb) == sorted(set(limits.memory_levels_mb))

    def test_a_missing_operator_is_refused(self, testbed: Testbed, job: Job, configuration: Configuration) -> None:
        for name in (job.sources[0].name, job.scaled_operators[0].name):
            fewer = {o: tasks for o, tasks in configuration.parallelism.items() if o != name}
            self._refused(testbed, job, replace(configuration, parallelism=fewer), InvalidInput)

    @pytest.mark.parametrize("tasks", [0, -1])
    def test_a_task_count_below_1_is_refused(
        self, testbed: Testbed, job: Job, configuration: Configuration, tasks: int
    ) -> None:
        wrong = {**configuration.parallelism, job.scaled_operators[0].name: tasks}
        self._refused(testbed, job, replace(configuration, parallelism=wrong), InvalidInput)

    def test_an_unknown_operator_is_refused(self, testbed: Testbed, job: Job, configuration: Configuration) -> None:
        wrong = {**configuration.parallelism, "unknown": 1}
        self._refused(testbed, job, replace(configuration, parallelism=wrong), InvalidInput)

    def test_more_slots_than_there_are_do_not_fit(
        self, testbed: Testbed, job: Job, configuration: Configuration
    ) -> None:
        many = {**configuration.parallelism, job.scaled_operators[0].name: testbed.limits.max_task_slots + 1}
        self._refused(testbed, job, replace(configuration, parallelism=many), Infeasible)

    @pytest.mark.parametrize("memory_mb", [1.0, 1e9])
    def test_memory_that_no_worker_has_does_not_fit(
        self, testbed: Testbed, job: Job, configuration: Configuration, memory_mb: float
    ) -> None:
        self._refused(testbed, job, replace(configuration, memory_mb=memory_mb), Infeasible)

    def test_a_placement_that_does_not_hold_every_task_is_refused(
        self, testbed: Testbed, job: Job, configuration: Configuration
    ) -> None:
        worker, name = testbed.cluster.workers[0].name, job.scaled_operators[0].name
        for placement in ({worker: {name: configuration.parallelism[name]}}, {"nowhere": {name: 1}}):
            self._refused(testbed, job, replace(configuration, placement=placement), InvalidInput)


class SampleConformance(DeployedSuite):
    """Samples and windows. A testbed without samples takes the other parts of the suite; its tables are empty."""

    @pytest.fixture
    def windows(self, run: Run) -> list[MeasuredWindow]:
        return windows_of(run, self.window_s, self.settle_s)

    def test_time_goes_forward_in_samples(self, windows: list[MeasuredWindow]) -> None:
        times = sorted(time for window in windows for time in pc.unique(window.samples["time_s"]).to_pylist())
        intervals = int(sum(window.seconds for window in windows) / SAMPLE_INTERVAL_S)
        assert times == pytest.approx([times[0] + SAMPLE_INTERVAL_S * i for i in range(intervals)])
        latest = [max(window.samples["time_s"].to_pylist()) for window in windows]
        assert latest == sorted(latest)

    def test_samples_have_the_schema(self, windows: list[MeasuredWindow]) -> None:
        for window in windows:
            assert window.samples.schema.equals(SAMPLE_SCHEMA)
            assert window.samples.num_rows > 0
            for column in SAMPLE_COLUMNS:
                assert column.nullable or window.samples[column.name].null_count == 0, column.name

    def test_every_task_reports_once_in_every_interval(
        self, windows: list[MeasuredWindow], job: Job, configuration: Configuration
    ) -> None:
        tasks = {(name, i) for name, count in configuration.parallelism.items() for i in range(count)}
        asked = {"run": "conformance-1", "job": job.name, "phase": "observe", "interval_s": SAMPLE_INTERVAL_S}
        for window in windows:
            samples = window.samples
            assert set(zip(samples["operator"].to_pylist(), samples["task"].to_pylist(), strict=True)) == tasks
            assert samples.num_rows == len(tasks) * window.seconds / SAMPLE_INTERVAL_S
            assert samples.group_by(list(SAMPLE_KEY)).aggregate([]).num_rows == samples.num_rows
            for column, value in asked.items():
                assert pc.unique(samples[column]).to_pylist() == [value]

    def test_shares_of_time_sum_to_the_interval(self, windows: list[MeasuredWindow]) -> None:
        for samples in (window.samples for window in windows):
            total = pc.add(pc.add(samples["busy_s"], samples["backpressured_s"]), samples["idle_s"])
            off = pc.max(pc.abs(pc.subtract(total, samples["interval_s"]))).as_py()
            assert off <= TIME_SHARES_TOLERANCE * SAMPLE_INTERVAL_S

    def test_values_are_within_their_bounds(self, windows: list[MeasuredWindow]) -> None:
        for samples in (window.samples for window in windows):
            for column in SAMPLE_COLUMNS:
                values = samples[column.name]
                if column.type is ColumnType.STRING or values.null_count == len(values):
                    continue
                assert pc.all(pc.is_finite(pc.drop_null(values))).as_py(), column.name
                least, most = pc.min(values).as_py(), pc.max(values).as_py()
                assert column.minimum is None or least >= column.minimum, column.name
                assert column.maximum is None or most <= column.maximum, column.name

    def test_lag_is_reported_at_sources_only(self, windows: list[MeasuredWindow], job: Job) -> None:
        samples = pa.concat_tables([window.samples for window in windows])
        sources = {o.name for o in job.sources}
        for operator, lag in zip(samples["operator"].to_pylist(), samples["lag_records"].to_pylist(), strict=True):
            assert (lag is not None) == (operator in sources)

    def test_samples_add_up_to_the_window(self, windows: list[MeasuredWindow], job: Job) -> None:
        for window in windows:
            taken = sum(_total(window.samples, o.name, "records_in") for o in job.sources)
            assert taken / window.seconds == pytest.approx(window.achieved_rate, rel=1e-6)

    def test_no_record_comes_from_nowhere(self, windows: list[MeasuredWindow], job: Job) -> None:
        samples = pa.concat_tables([window.samples for window in windows])
        for operator in job.operators:
            edges = job.upstream_edges(operator.name)
            if not edges or any(e.partitioning is Partitioning.BROADCAST for e in edges):
                continue
            sent = sum(e.share * _total(samples, e.upstream, "records_out") for e in edges)
            assert _total(samples, operator.name, "records_in") <= sent * (1 + self.tolerance) + 1


class SourceConformance(DeployedSuite):
    """Sources that do not pass on all records. Needs samples."""

    def test_a_rate_counts_what_a_source_takes_in_and_not_what_it_passes_on(
        self, testbed: Testbed, job: Job, configuration: Configuration
    ) -> None:
        """The source drops two records of ten."""
        first, *others = job.operators
        dropping = job.model_copy(update={"operators": (first.model_copy(update={"selectivity": 0.8}), *others)})
        with testbed.deploy(dropping, configuration, run="conformance-dropping", seed=1) as deployed:
            deployed.inject(1000.0, self.settle_s, "warmup")
            window = deployed.inject(1000.0, self.window_s, "observe")
        assert window.achieved_rate == pytest.approx(1000.0, rel=1 - MUCH_OF_A_RATE)
        source, after = dropping.sources[0].name, dropping.downstream_edges(first.name)[0].downstream
        taken = _total(window.samples, source, "records_in")
        assert _total(window.samples, source, "records_out") == pytest.approx(0.8 * taken, rel=0.01)
        assert _total(window.samples, after, "records_in") == pytest.approx(0.8 * taken, rel=0.02)


class RateConformance(DeployedSuite):
    """Behaviour at an offered rate."""

    def test_it_never_emits_more_than_it_is_offered(self, run: Run) -> None:
        for rate in (100.0, 10_000.0, OVERLOAD):
            window = run.inject(rate, self.window_s, "ramp")
            assert window.target_rate == rate and window.seconds == self.window_s
            assert 0 <= window.achieved_rate <= rate * (1 + 1e-9)

    def test_a_low_rate_is_sustained(self, run: Run) -> None:
        low = saturated_rate(run, self.settle_s) / 4
        run.inject(low, self.settle_s, "ramp")
        window = run.inject(low, self.window_s, "observe")
        assert window.achieved_rate >= MUCH_OF_A_RATE * low
        assert window.pending_records <= low * SAMPLE_INTERVAL_S

    def test_what_is_not_taken_is_pending_until_the_rate_changes(self, run: Run) -> None:
        saturated = saturated_rate(run, self.settle_s)
        high = 3 * saturated
        first = run.inject(high, self.window_s, "observe")
        second = run.inject(high, self.window_s, "observe")
        assert first.achieved_rate < MUCH_OF_A_RATE * high
        owed = sum((high - w.achieved_rate) * w.seconds for w in (first, second))
        assert second.pending_records == pytest.approx(owed, rel=0.05)
        low = saturated / 4
        run.inject(low, self.settle_s, "cooldown")
        assert run.inject(low, self.window_s, "cooldown").pending_records <= low * SAMPLE_INTERVAL_S

    @pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf])
    def test_a_rate_must_be_above_0(self, run: Run, rate: float) -> None:
        with pytest.raises(InvalidInput):
            run.inject(rate, self.window_s, "observe")

    @pytest.mark.parametrize("seconds", [0.0, -5.0, 7.5])
    def test_a_duration_must_be_of_whole_intervals(self, run: Run, seconds: float) -> None:
        with pytest.raises(InvalidInput):
            run.inject(1000.0, seconds, "observe")

    def test_an_mst_search_ends_at_a_rate_that_is_sustained(self, run: Run) -> None:
        search = MstSearch(self.mst)
        while (injection := search.next()) is not None:
            search.observe(run.inject(injection.rate, injection.seconds, injection.phase).achieved_rate)
        assert run.elapsed_s >= self.mst.warmup_s
        assert search.mst is not None, search.reason
        rate = 0.9 * search.mst
        run.inject(rate, self.settle_s, "ramp")
        assert run.inject(rate, 2 * self.window_s, "observe").achieved_rate >= 0.98 * rate

    def test_time_passes_in_inject_only(self, run: Run) -> None:
        before = run.elapsed_s
        assert run.elapsed_s == before >= 0
        run.inject(1000.0, self.window_s, "warmup")
        assert run.elapsed_s == pytest.approx(before + self.window_s)


class RunConformance(DeployedSuite):
    """Placement, and the end of runs."""

    def test_tasks_run_where_they_are_placed(self, testbed: Testbed, job: Job, configuration: Configuration) -> None:
        worker = testbed.cluster.workers[-1].name
        placement = {worker: {o.name: configuration.parallelism[o.name] for o in job.scaled_operators}}
        placed = replace(configuration, placement=placement)
        if not self.places_tasks:
            self._refused(testbed, job, placed, InvalidInput)
            return
        with testbed.deploy(job, placed, run="conformance-1", seed=1) as deployed:
            samples = deployed.inject(1000.0, self.window_s, "observe").samples
        where = set(zip(samples["operator"].to_pylist(), samples["worker"].to_pylist(), strict=True))
        scaled = {o.name for o in job.scaled_operators}
        assert {place for place in where if place[0] in scaled} == {(name, worker) for name in scaled}

    def test_closing_twice_is_fine_and_a_closed_run_takes_no_rate(
        self, testbed: Testbed, job: Job, configuration: Configuration
    ) -> None:
        deployed = testbed.deploy(job, configuration, run="conformance-1", seed=1)
        deployed.close()
        deployed.close()
        with pytest.raises(SluiceError):
            deployed.inject(1000.0, self.window_s, "observe")

    def test_leaving_the_context_closes_the_run(self, testbed: Testbed, job: Job, configuration: Configuration) -> None:
        with testbed.deploy(job, configuration, run="conformance-1", seed=1) as deployed:
            deployed.inject(1000.0, self.window_s, "observe")
        with pytest.raises(SluiceError):
            deployed.inject(1000.0, self.window_s, "observe")


class RepeatConformance(DeployedSuite):
    """For testbeds whose runs are exactly reproducible."""

    def test_the_same_seed_repeats_the_same_run(self, testbed: Testbed, job: Job, configuration: Configuration) -> None:
        def measure() -> list[MeasuredWindow]:
            with testbed.deploy(job, configuration, run="conformance-1", seed=7) as deployed:
                return [deployed.inject(rate, self.window_s, "observe") for rate in (OVERLOAD, 1000.0)]

        for first, second in zip(measure(), measure(), strict=True):
            assert first.samples.equals(second.samples)
            assert (first.achieved_rate, first.pending_records) == (second.achieved_rate, second.pending_records)

    def test_runs_do_not_disturb_each_other(self, testbed: Testbed, job: Job, configuration: Configuration) -> None:
        def rate_of_a_run() -> float:
            with testbed.deploy(job, configuration, run="conformance-1", seed=3) as deployed:
                return deployed.inject(OVERLOAD, self.window_s, "observe").achieved_rate

        alone = rate_of_a_run()
        with testbed.deploy(job, configuration, run="conformance-2", seed=5) as other:
            other.inject(OVERLOAD, self.window_s, "observe")
            assert rate_of_a_run() == alone


class TestbedConformance(
    RefusalConformance, SampleConformance, SourceConformance, RateConformance, RunConformance, RepeatConformance
):
    """The whole suite. Rates are found by overload, so no assumption is made about a testbed's speed."""


def _total(samples: pa.Table, operator: str, column: str) -> float:
    return float(pc.sum(samples.filter(pc.field("operator") == operator)[column]).as_py())
