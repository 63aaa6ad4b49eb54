"""Rates read off samples, by hand; the MST search on the simulator."""

import pyarrow as pa
import pytest

from models.capacity.mst import MstSettings
from models.errors import SluiceError
from models.job import Job
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.measuring.estimate import (
    SHORT,
    drained_mst,
    mst_settings,
    operator_rates,
    search_mst,
    source_rates_per_task,
)
from testbeds.protocol import Configuration
from testbeds.simulator import Physics, Simulator


@pytest.fixture
def job() -> Job:
    return load_job("wordcount")


def with_source_selectivity(job: Job, selectivity: float) -> Job:
    operators = (o.model_copy(update={"selectivity": selectivity}) if o in job.sources else o for o in job.operators)
    return job.model_copy(update={"operators": tuple(operators)})


def samples(*rows: tuple[str, float, float, float]) -> pa.Table:
    """Operator, records in, records out, busy seconds."""
    names = ("operator", "records_in", "records_out", "busy_s")
    return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})


def test_rates_are_records_over_busy_seconds(job: Job) -> None:
    table = samples(
        ("source", 100, 100, 1),
        ("flatmap", 60, 1200, 30),
        ("flatmap", 40, 800, 10),
        ("count", 2000, 0, 100),
    )
    flatmap, count = operator_rates(job, table)
    assert (flatmap.name, flatmap.true_rate_per_task, flatmap.records_in_per_source_record) == ("flatmap", 2.5, 1.0)
    assert (count.name, count.true_rate_per_task, count.records_in_per_source_record) == ("count", 20.0, 20.0)
    assert source_rates_per_task(job, table) == {"source": 100.0}


def test_the_rate_of_a_source_is_what_it_takes_in(job: Job) -> None:
    """It drops one record of ten."""
    table = samples(("source", 100, 90, 1), ("flatmap", 90, 1800, 30), ("count", 1800, 0, 100))
    flatmap, count = operator_rates(job, table)
    assert (flatmap.records_in_per_source_record, count.records_in_per_source_record) == (0.9, 18.0)
    assert source_rates_per_task(job, table) == {"source": 100.0}


def test_an_operator_that_saw_nothing_is_an_error_that_names_it(job: Job) -> None:
    table = samples(("source", 100, 100, 1), ("flatmap", 60, 1200, 30), ("count", 0, 0, 0))
    with pytest.raises(SluiceError, match="'count'"):
        operator_rates(job, table)


def test_jobs_with_several_stateful_operators_get_the_longer_search() -> None:
    assert mst_settings(load_job("nexmark-q11")) == MstSettings.simple()
    assert mst_settings(load_job("nexmark-q5")) == MstSettings.complex()


def test_the_search_finds_the_rate_of_the_slowest_operator(job: Job) -> None:
    # One FlatMap task splits 100 000 sentences a minute, 1 666.7 a second; Count keeps up with two tasks.
    configuration = Configuration({"source": 1, "flatmap": 1, "count": 3}, memory_mb=65536)
    testbed = Simulator(load_cluster("testbed"), physics=Physics().ideal())
    with testbed.deploy(job, configuration, run="r", seed=1) as run:
        search, windows = search_mst(run, mst_settings(job).model_copy(update={"warmup_rate": 5000.0}))
    # The search takes 3 % more for sustained, which fills the buffers before FlatMap; without noise nothing else differs.
    assert search.mst == pytest.approx(1_666.7, rel=0.05)
    assert sum(w.seconds for w in windows) == 645.0  # StreamBed section 8.2: one CE run of a simple query


def test_a_drain_finds_the_same_rate_in_a_tenth_of_the_time(job: Job) -> None:
    configuration = Configuration({"source": 1, "flatmap": 1, "count": 3}, memory_mb=65536)
    settings = SHORT.model_copy(update={"warmup_s": 60.0, "warmup_rate": 5000.0, "observe_s": 30.0})
    testbed = Simulator(load_cluster("testbed"), physics=Physics().ideal())
    with testbed.deploy(job, configuration, run="r", seed=1) as run:
        found, windows = drained_mst(run, settings)
    assert found.mst == pytest.approx(1_666.7, rel=0.01)
    assert sum(w.seconds for w in windows) == 120.0  # the warm-up, and two windows of 30 s that agree


@pytest.mark.parametrize("selectivity", [0.9, 0.5])
def test_a_source_that_drops_records_sustains_what_it_takes_in(job: Job, selectivity: float) -> None:
    """FlatMap's 1 666.7 records/s are this share of what the source takes in."""
    dropping = with_source_selectivity(job, selectivity)
    configuration = Configuration({"source": 1, "flatmap": 1, "count": 3}, memory_mb=65536)
    testbed = Simulator(load_cluster("testbed"), physics=Physics().ideal())
    with testbed.deploy(dropping, configuration, run="r", seed=1) as run:
        search, _ = search_mst(run, mst_settings(job).model_copy(update={"warmup_rate": 5000.0}))
        run.inject(1000.0, 300.0, "cooldown")  # what waits is worked off
        below = run.inject(1000.0, 30.0, "observe")
    assert search.mst == pytest.approx(1_666.7 / selectivity, rel=0.05)
    flatmap, _ = operator_rates(dropping, below.samples)
    assert flatmap.records_in_per_source_record == pytest.approx(selectivity, rel=0.01)
