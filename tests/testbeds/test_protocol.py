"""The conformance suite finds what it is there to find: each fault below must fail the test that guards against it."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from models.job import Job
from models.metrics import SAMPLE_COLUMNS
from testbeds import conformance
from testbeds.protocol import SAMPLE_SCHEMA, Configuration, Limits, MeasuredWindow
from testbeds.simulator import Simulator
from testbeds.suite import small_job, windows_of

Change = Callable[[MeasuredWindow], MeasuredWindow]


def test_the_schema_has_every_column_of_the_specification() -> None:
    assert SAMPLE_SCHEMA.names == [c.name for c in SAMPLE_COLUMNS]
    assert [f.nullable for f in SAMPLE_SCHEMA] == [c.nullable for c in SAMPLE_COLUMNS]
    assert {c.name for c in SAMPLE_COLUMNS if c.nullable} == {"state_latency_s", "lag_records"}


def window_of(window: MeasuredWindow, **changed: Any) -> MeasuredWindow:
    return MeasuredWindow(**{**vars(window), **changed})


def column(name: str, change: Callable[[np.ndarray], np.ndarray]) -> Change:
    """A window whose samples have one column changed."""

    def apply(window: MeasuredWindow) -> MeasuredWindow:
        at = window.samples.schema.get_field_index(name)
        values = change(window.samples[name].to_numpy(zero_copy_only=False))
        return window_of(window, samples=window.samples.set_column(at, SAMPLE_SCHEMA.field(name), [pa.array(values)]))

    return apply


class Faulty:
    """The simulator with its windows changed on the way out."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.run: Any = Simulator().deploy(small_job(), configuration(), run="conformance-1", seed=1)

    @property
    def elapsed_s(self) -> float:
        return float(self.run.elapsed_s)

    def inject(self, rate: float, seconds: float, phase: str) -> MeasuredWindow:
        return self.change(self.run.inject(rate, seconds, phase))


def configuration() -> Configuration:
    return Configuration(parallelism={"source": 2, "map": 1, "count": 1, "sink": 1}, memory_mb=65536)


def rows(keep: Callable[[int], np.ndarray]) -> Change:
    return lambda window: window_of(window, samples=window.samples.take(pa.array(keep(window.samples.num_rows))))


FAULTS: dict[str, tuple[str, Change, dict[str, Any]]] = {
    "more than offered": (
        "test_it_never_emits_more_than_it_is_offered",
        lambda w: window_of(w, achieved_rate=w.target_rate * 1.01),
        {},
    ),
    "a low rate that is not sustained": (
        "test_a_low_rate_is_sustained",
        lambda w: window_of(w, achieved_rate=w.achieved_rate * (1.0 if w.achieved_rate > 30_000 else 0.9)),
        {},
    ),
    "a backlog that stays": (
        "test_what_is_not_taken_is_pending_until_the_rate_changes",
        lambda w: window_of(w, pending_records=w.pending_records + 1e9),
        {},
    ),
    "time that stands": (
        "test_time_goes_forward_in_samples",
        column("time_s", lambda v: np.full_like(v, v.max())),
        {},
    ),
    "a column too few": (
        "test_samples_have_the_schema",
        lambda w: window_of(w, samples=w.samples.drop_columns(["lag_records"])),
        {},
    ),
    "a row that appears twice": (
        "test_every_task_reports_once_in_every_interval",
        rows(lambda n: np.r_[0, np.arange(n - 1)]),
        {"job": small_job(), "configuration": configuration()},
    ),
    "a task that does not report": (
        "test_every_task_reports_once_in_every_interval",
        rows(lambda n: np.arange(1, n)),
        {"job": small_job(), "configuration": configuration()},
    ),
    "busier than time allows": (
        "test_shares_of_time_sum_to_the_interval",
        column("busy_s", lambda v: v + 0.1),
        {},
    ),
    "a negative count": (
        "test_values_are_within_their_bounds",
        column("cache_hits", lambda v: v - 1),
        {},
    ),
    "not a number": ("test_values_are_within_their_bounds", column("cpu_s", lambda v: v * np.nan), {}),
    "lag of an operator": (
        "test_lag_is_reported_at_sources_only",
        column("lag_records", lambda v: np.nan_to_num(v.astype(float))),
        {"job": small_job()},
    ),
    "samples of another rate": (
        "test_samples_add_up_to_the_window",
        column("records_in", lambda v: v * 1.01),
        {"job": small_job()},
    ),
    "records from nowhere": (
        "test_no_record_comes_from_nowhere",
        column("records_in", lambda v: v * 1.5),
        {"job": small_job()},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_suite_finds(fault: str) -> None:
    test, change, arguments = FAULTS[fault]
    suite = conformance.TestbedConformance()
    of_samples = hasattr(conformance.SampleConformance, test)
    for run, outcome in ((Faulty(lambda w: w), nullcontext()), (Faulty(change), pytest.raises(AssertionError))):
        with outcome:
            getattr(suite, test)(windows_of(run, 30.0, 60.0) if of_samples else run, **arguments)


class Refusing:
    """A testbed that deploys whatever it is given, in a configuration of its own."""

    name = "refusing nothing"
    cluster = Simulator().cluster
    limits = Limits(max_task_slots=48, memory_levels_mb=(65536.0,), slots_per_worker=16)

    def deploy(self, job: Job, configuration_: Configuration, *, run: str, seed: int) -> Any:
        return Simulator().deploy(job, configuration(), run=run, seed=np.random.default_rng().integers(2**31))


@pytest.mark.parametrize(
    ("test", "arguments"),
    [
        ("test_a_missing_operator_is_refused", {}),
        ("test_a_task_count_below_1_is_refused", {"tasks": 0}),
        ("test_an_unknown_operator_is_refused", {}),
        ("test_more_slots_than_there_are_do_not_fit", {}),
        ("test_memory_that_no_worker_has_does_not_fit", {"memory_mb": 1.0}),
        ("test_a_placement_that_does_not_hold_every_task_is_refused", {}),
    ],
)
def test_the_suite_finds_a_testbed_that_refuses_nothing(test: str, arguments: dict[str, Any]) -> None:
    suite = conformance.TestbedConformance()
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        getattr(suite, test)(Refusing(), small_job(), configuration(), **arguments)


@pytest.mark.parametrize("test", ["test_the_same_seed_repeats_the_same_run", "test_tasks_run_where_they_are_placed"])
def test_the_suite_finds_a_testbed_that_ignores_what_it_is_reported(test: str) -> None:
    suite = conformance.TestbedConformance()
    with pytest.raises(AssertionError):
        getattr(suite, test)(Refusing(), small_job(), configuration())
