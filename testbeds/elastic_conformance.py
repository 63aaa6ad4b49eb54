"""The conformance suite of elastic runs: subclass it to test a testbed that can rescale.

    class TestMine(ElasticConformance):
        @pytest.fixture
        def testbed(self) -> Testbed:
            return Mine(...)

Override `job` and `configuration` if the small job cannot run there; `window_s`, `settle_s` and `catch_up_s` if tests take
real time. Such a testbed may run some parts of the suite often, and the others in long tests.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np
import pytest

from models.errors import Infeasible, InvalidInput, SluiceError
from models.job import Job
from models.metrics import SAMPLE_INTERVAL_S, TIME_SHARES_TOLERANCE
from testbeds.protocol import Configuration, ElasticRun, Served, Testbed
from testbeds.suite import OVERLOAD, Suite


class ElasticSuite(Suite):
    """Base of the parts of this suite."""

    catch_up_s: ClassVar[float] = 600.0
    """Time in which a job with four times the needed capacity has caught up after any of the rescales."""

    @pytest.fixture
    def more(self, job: Job, configuration: Configuration) -> Configuration:
        """Twice the tasks of every operator that is scaled."""
        doubled = {o.name: 2 * configuration.parallelism[o.name] for o in job.scaled_operators}
        return replace(configuration, parallelism={**configuration.parallelism, **doubled})

    @pytest.fixture
    def run(self, testbed: Testbed, job: Job, configuration: Configuration) -> Iterator[ElasticRun]:
        with testbed.deploy(job, configuration, run="conformance-1", seed=1) as deployed:
            yield cast(ElasticRun, deployed)

    @pytest.fixture
    def rate(self, testbed: Testbed, job: Job, configuration: Configuration) -> float:
        """Records/s: a quarter of what the job takes once it has settled."""
        with testbed.deploy(job, configuration, run="conformance-2", seed=1) as deployed:
            deployed.inject(OVERLOAD, self.settle_s, "warmup")
            return deployed.inject(OVERLOAD, self.window_s, "warmup").achieved_rate / 4

    def _has_caught_up(self, served: Served, rate: float) -> None:
        """At the end the lag is at most the records of one interval."""
        assert served.lag[-1] <= rate * SAMPLE_INTERVAL_S

    def _state_bytes(self, served: Served) -> float:
        return float(sum(did.state_bytes.sum() for did in served.activity.values()))


class LogConformance(ElasticSuite):
    """Records that arrive in the log and records that are read."""

    def test_intervals_are_reported_one_by_one(self, run: ElasticRun, rate: float) -> None:
        served = run.serve(rate, self.window_s)
        assert served.seconds == served.running_s == self.window_s
        for column in (served.arrived, served.read, served.lag):
            assert (
                column.dtype == np.float64
                and column.shape == (self.window_s / SAMPLE_INTERVAL_S,)
                and (column >= 0).all()
            )
        assert np.allclose(served.arrived, rate * SAMPLE_INTERVAL_S, rtol=max(self.tolerance, 0.01))

    def test_what_arrives_is_read_or_waits(self, run: ElasticRun, rate: float, more: Configuration) -> None:
        arrived = read = 0.0
        for factor, rescale in ((1.0, False), (8.0, False), (0.5, True), (0.0, False), (1.0, True), (0.0, False)):
            if rescale:
                run.rescale(
                    more if run.configuration != more else replace(more, parallelism=run.configuration.parallelism)
                )
            served = run.serve(factor * rate, 2 * self.window_s)
            lags = arrived - read + np.cumsum(served.arrived - served.read)
            arrived, read = arrived + served.arrived.sum(), read + served.read.sum()
            assert np.allclose(served.lag, lags, rtol=0, atol=self.tolerance * arrived + 1e-3)

    def test_what_is_too_much_is_paid_back_later(self, run: ElasticRun, rate: float) -> None:
        run.serve(rate, self.settle_s)
        behind = run.serve(8 * rate, 2 * self.window_s)
        assert behind.lag[-1] > 2 * self.window_s * rate
        paying = run.serve(rate, self.catch_up_s)
        assert paying.read.max() > 2 * rate * SAMPLE_INTERVAL_S
        self._has_caught_up(paying, rate)

    def test_no_records_no_work(self, run: ElasticRun, rate: float) -> None:
        run.serve(rate, 2 * self.window_s)
        run.serve(0.0, 2 * self.window_s)
        silent = run.serve(0.0, self.window_s)
        assert silent.arrived.sum() == silent.read.sum() == silent.lag[-1] == 0
        assert all(did.records_in.sum() == 0 for did in silent.activity.values())

    @pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
    def test_a_rate_that_cannot_be_is_refused(self, run: ElasticRun, wrong: float) -> None:
        with pytest.raises(InvalidInput):
            run.serve(wrong, self.window_s)

    @pytest.mark.parametrize("seconds", [0.0, -5.0, 7.5])
    def test_a_time_that_cannot_be_is_refused(self, run: ElasticRun, seconds: float) -> None:
        with pytest.raises(InvalidInput):
            run.serve(1.0, seconds)


class ActivityConformance(ElasticSuite):
    """Reports on the tasks."""

    def test_every_task_of_every_operator_is_reported(self, run: ElasticRun, job: Job, rate: float) -> None:
        served = run.serve(rate, 2 * self.window_s)
        assert set(served.activity) == set(job.order)
        sources = {o.name for o in job.sources}
        for name, did in served.activity.items():
            assert did.seconds == served.running_s
            for column, values in vars(did).items():
                if isinstance(values, np.ndarray):
                    assert values.shape == (run.configuration.parallelism[name],), column
                    assert np.isfinite(values).all() and (values >= 0).all(), column
            spent = did.busy_s + did.backpressured_s + did.idle_s
            assert np.allclose(spent, did.seconds, rtol=0, atol=TIME_SHARES_TOLERANCE * did.seconds)
            assert (did.input_queue_share <= 1.0).all()
            assert name in sources or did.lag_records.sum() == 0
        read = sum(served.activity[name].records_in.sum() for name in sources)
        assert read == pytest.approx(served.read.sum(), rel=max(self.tolerance, 1e-6))

    def test_state_is_where_it_is_kept(self, run: ElasticRun, job: Job, rate: float) -> None:
        activity = run.serve(rate, 2 * self.window_s).activity
        for operator in job.operators:
            did = activity[operator.name]
            assert did.keeps_state == (operator.state is not None)
            assert (did.state_bytes.sum() > 0) == did.keeps_state
            assert did.keeps_state or did.cache_hits.sum() + did.cache_misses.sum() == 0

    def test_overload_shows_as_full_queues_and_lag(self, run: ElasticRun, rate: float) -> None:
        run.serve(rate, self.settle_s)
        calm = run.serve(rate, self.window_s).activity
        full = run.serve(16 * rate, 2 * self.window_s).activity
        assert max(did.input_queue_share.max() for did in calm.values()) < 0.5
        assert max(did.input_queue_share.max() for did in full.values()) > 0.5
        assert max(did.busy_s.max() / did.seconds for did in full.values()) > 0.8


class RescaleConformance(ElasticSuite):
    """Rescales of the running job."""

    def test_lag_grows_while_the_job_is_down_and_is_caught_up(
        self, run: ElasticRun, rate: float, more: Configuration
    ) -> None:
        run.serve(rate, self.settle_s)
        done = run.rescale(more)
        assert done.downtime_s > 0 and done.state_mb >= 0
        assert run.configuration == more
        intervals = int(done.downtime_s // SAMPLE_INTERVAL_S) + 1
        down = run.serve(rate, intervals * SAMPLE_INTERVAL_S)
        assert down.seconds - down.running_s == pytest.approx(done.downtime_s, rel=0.1, abs=0.2)
        assert down.lag.max() >= rate * (done.downtime_s - SAMPLE_INTERVAL_S)
        after = run.serve(rate, self.catch_up_s)
        assert after.running_s == after.seconds
        self._has_caught_up(after, rate)
        assert {name: len(did.busy_s) for name, did in after.activity.items()} == dict(more.parallelism)

    def test_state_outlives_a_rescale(self, run: ElasticRun, rate: float, more: Configuration) -> None:
        run.serve(rate, self.settle_s)
        before = self._state_bytes(run.serve(rate, self.window_s))
        done = run.rescale(more)
        assert done.state_mb * 2**20 == pytest.approx(before, rel=0.1)
        run.serve(rate, self.catch_up_s)
        assert self._state_bytes(run.serve(rate, self.window_s)) == pytest.approx(before, rel=0.1)

    def test_more_tasks_read_more(self, run: ElasticRun, rate: float, more: Configuration) -> None:
        run.serve(16 * rate, self.settle_s)
        few = run.serve(16 * rate, self.window_s).read.sum()
        run.rescale(more)
        run.serve(16 * rate, self.settle_s)
        assert run.serve(16 * rate, self.window_s).read.sum() > 1.3 * few

    def test_to_the_same_configuration_is_a_restart(
        self, run: ElasticRun, rate: float, configuration: Configuration
    ) -> None:
        run.serve(rate, self.settle_s)
        assert run.rescale(configuration).downtime_s > 0
        assert run.configuration == configuration
        self._has_caught_up(run.serve(rate, self.catch_up_s), rate)

    def test_what_cannot_be_leaves_the_job_running(
        self, run: ElasticRun, testbed: Testbed, job: Job, rate: float, configuration: Configuration
    ) -> None:
        run.serve(rate, self.settle_s)
        name = job.scaled_operators[0].name
        for tasks, error in ((testbed.limits.max_task_slots + 1, Infeasible), (0, InvalidInput)):
            with pytest.raises(error):
                run.rescale(replace(configuration, parallelism={**configuration.parallelism, name: tasks}))
        served = run.serve(rate, self.window_s)
        assert run.configuration == configuration
        assert served.running_s == served.seconds
        self._has_caught_up(served, rate)

    def test_a_closed_run_does_nothing(self, run: ElasticRun, configuration: Configuration) -> None:
        run.close()
        with pytest.raises(SluiceError):
            run.serve(1.0, self.window_s)
        with pytest.raises(SluiceError):
            run.rescale(configuration)


class ElasticConformance(LogConformance, ActivityConformance, RescaleConformance):
    """Subclass with a fixture `testbed`. Rates are found by overload, so no assumption is made about its speed."""
