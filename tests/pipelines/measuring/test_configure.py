"""The Configuration Optimizer on the simulator: word count, whose best configurations follow from its limits."""

from dataclasses import replace

import pytest

from models.capacity.observation import Budget, OperatorRates
from models.errors import Infeasible, InvalidInput
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.measuring.configure import Optimizer
from testbeds.protocol import Limits
from testbeds.simulator import Physics, Simulator

FLATMAP_RATE, COUNT_RATE = 100_000 / 60, 1_000_000 / 60
RATES = (
    OperatorRates(name="flatmap", true_rate_per_task=FLATMAP_RATE, records_in_per_source_record=1),
    OperatorRates(name="count", true_rate_per_task=COUNT_RATE, records_in_per_source_record=20),
)


IDEAL = Physics().ideal()
"""Without noise, so that rates differ from those worked out by hand only by what buffers take while the MST is searched."""


@pytest.fixture
def optimizer() -> Optimizer:
    testbed = Simulator(load_cluster("testbed"), physics=IDEAL)
    return Optimizer(load_job("wordcount"), testbed, {"source": 100_000.0}, RATES)


def test_a_single_task_run_measures_the_slowest_operator(optimizer: Optimizer) -> None:
    observation = optimizer.measure_single_task(65536, run="single", seed=1).observation
    assert observation.parallelism == {"source": 1, "flatmap": 1, "count": 1}
    # One Count task takes 1 M words a minute, the words of 50 000 sentences.
    assert observation.mst == pytest.approx(COUNT_RATE / 20, rel=0.1)
    assert observation.bids2_rate is None
    flatmap, count = observation.operators
    assert flatmap.true_rate_per_task == pytest.approx(FLATMAP_RATE, rel=1e-3)
    # At the MST, Count takes all that it can; the words of the rest (9 %) fill the buffers before it.
    assert observation.mst * count.records_in_per_source_record == pytest.approx(COUNT_RATE, rel=1e-3)


def test_a_budget_gets_its_best_configuration(optimizer: Optimizer) -> None:
    measurement = optimizer.measure(Budget(task_slots=30, memory_mb=65536), RATES, run="m", seed=1)
    observation = measurement.observation
    # DS2 section 5.2: 10 FlatMap and 20 Count tasks take 1 M sentences a minute.
    assert (observation.parallelism["flatmap"], observation.parallelism["count"]) == (10, 20)
    assert observation.bids2_rate == pytest.approx(1e6 / 60)
    assert observation.mst == pytest.approx(1e6 / 60, rel=0.05)
    assert set(measurement.samples["phase"].to_pylist()) == {"warmup", "cooldown", "ramp", "observe"}


def test_sources_can_emit_twice_what_is_expected(optimizer: Optimizer) -> None:
    assert optimizer.source_tasks(350_000) == {"source": 4}


def test_a_source_gets_no_more_tasks_than_it_may_have(optimizer: Optimizer) -> None:
    """A topic of two partitions."""
    limited = optimizer.job.sources[0].model_copy(update={"max_parallelism": 2})
    job = optimizer.job.model_copy(update={"operators": (limited, *optimizer.job.scaled_operators)})
    assert replace(optimizer, job=job).source_tasks(350_000) == {"source": 2}


class RoomForFourSources(Simulator):
    @property
    def limits(self) -> Limits:
        return replace(super().limits, max_source_tasks=4)


class RoomForOneSource(Simulator):
    @property
    def limits(self) -> Limits:
        return replace(super().limits, max_source_tasks=1)


@pytest.mark.parametrize(
    ("shares", "tasks"),
    [
        ((0.98, 0.01, 0.01), [2, 1, 1]),
        ((0.5, 0.25, 0.25), [2, 1, 1]),
        ((0.2,) * 5, [1] * 5),
        ((0.0001, 0.0001), [1, 1]),
    ],
)
def test_all_sources_together_get_no_more_than_there_is_room_for(shares: tuple[float, ...], tasks: list[int]) -> None:
    """Room for four; each has a task, even where there is no room for that."""
    job = load_job("wordcount")
    names = [f"source {number}" for number in range(len(shares))]
    sources = [
        job.sources[0].model_copy(update={"name": name, "rate_share": share})
        for name, share in zip(names, shares, strict=True)
    ]
    job = job.model_copy(update={"operators": (*sources, *job.scaled_operators)})
    testbed = RoomForFourSources(load_cluster("testbed"), physics=IDEAL)
    assert list(Optimizer(job, testbed, dict.fromkeys(names, 10.0), RATES).source_tasks(4000).values()) == tasks


@pytest.mark.parametrize(("cpu_s", "is_reported"), [(1e-3, True), (1e-5, False)])
def test_a_limit_set_by_the_sources_is_reported(cpu_s: float, is_reported: bool) -> None:
    job = load_job("wordcount")
    source = job.sources[0]
    slow = source.model_copy(update={"cost": source.cost.model_copy(update={"cpu_s": cpu_s})})
    job = job.model_copy(update={"operators": (slow, *job.scaled_operators)})
    messages: list[str] = []
    testbed = RoomForOneSource(load_cluster("testbed"), physics=IDEAL)
    optimizer = Optimizer(job, testbed, {"source": 1 / cpu_s}, RATES, say=messages.append)
    observation = optimizer.measure(Budget(task_slots=6, memory_mb=65536), RATES, run="m", seed=1).observation
    assert observation.parallelism == {"source": 1, "flatmap": 2, "count": 4}
    # Two FlatMap tasks take 200 000 sentences a minute; a source that takes a millisecond for each emits 60 000.
    assert observation.mst == pytest.approx(1000 if is_reported else 2 * FLATMAP_RATE, rel=0.05)
    assert [("all that 'source' emits with its tasks (1)" in line) for line in messages] == [True] * is_reported


def test_the_job_says_which_memory_is_worth_measuring() -> None:
    testbed = Simulator(load_cluster("testbed"))
    assert Optimizer(load_job("wordcount"), testbed, {}, ()).memory_levels_mb == (8192, 16384, 32768, 65536)
    q5 = load_job("nexmark-q5")
    assert Optimizer(q5, testbed, {}, ()).memory_levels_mb == (32768, 65536)
    with pytest.raises(InvalidInput, match="asks for 1000"):
        Optimizer(q5.model_copy(update={"memory_levels_mb": (1000.0,)}), testbed, {}, ()).memory_levels_mb  # noqa: B018


def test_more_slots_than_the_testbed_has_are_infeasible(optimizer: Optimizer) -> None:
    with pytest.raises(Infeasible, match="48 task slots"):
        optimizer.measure(Budget(task_slots=49, memory_mb=65536), RATES, run="m", seed=1)
