"""The diagnosis of configurations on the simulator, whose physics shows what the remedy really brings."""

import math
from collections.abc import Mapping

import pyarrow as pa
import pytest

from models.capacity.bids2 import bids2
from models.capacity.diagnosis.bound_by import BoundBy
from models.capacity.diagnosis.diagnose import diagnose
from models.capacity.observation import OperatorRates
from models.job import Job, records_in_per_source_record
from pipelines.inputs.catalogue import load_cluster, load_job
from pipelines.measuring.bound_facts import bound_facts, limit_window
from testbeds.protocol import Configuration, MeasuredWindow
from testbeds.simulator import Simulator

TESTBED = load_cluster("testbed")


def configured(job: Job, slots: int, memory_mb: float = 65536) -> tuple[Configuration, float]:
    """The best configuration by the costs in the job's file, and twice the rate it would take with an even load."""
    ratio = records_in_per_source_record(job)
    rates = [
        OperatorRates(name=o.name, true_rate_per_task=1 / o.cost.cpu_s, records_in_per_source_record=ratio[o.name])
        for o in job.scaled_operators
    ]
    best = bids2(rates, slots, job.max_parallelism)
    offered = 2 * best.source_rate
    sources = {s.name: math.ceil(1.5 * offered * s.rate_share * s.cost.cpu_s) for s in job.sources}
    return Configuration({**sources, **best.parallelism}, memory_mb), offered


def saturated(job: Job, configuration: Configuration, offered: float) -> MeasuredWindow:
    with Simulator(TESTBED).deploy(job, configuration, run="r", seed=1) as run:
        run.inject(offered, 60, "warmup")
        return run.inject(offered, 60, "observe")


def diagnosed(job: Job, window: MeasuredWindow) -> BoundBy:
    return diagnose(bound_facts(job, window, {w.name: w for w in TESTBED.workers}))


def altered(job: Job, **operators: Mapping[str, object]) -> Job:
    changed = tuple(o.model_copy(update=dict(operators.get(o.name, {}))) for o in job.operators)
    return job.model_copy(update={"operators": changed})


def test_q1_is_bound_by_the_cpu_of_its_operator() -> None:
    job = load_job("nexmark-q1")
    configuration, offered = configured(job, 20)
    found = diagnosed(job, saturated(job, configuration, offered))
    assert (found.vertex, found.cause) == ("calc", "CPU")
    assert found.effect is not None and found.effect.gain == pytest.approx(0.25, abs=0.05)


def test_q5_is_bound_by_operators_that_have_the_window_as_their_key() -> None:
    """The computed effect is that of the remedy applied, within 20 %: rates of q5 in two windows differ by 10 %."""
    job = load_job("nexmark-q5")
    configuration, offered = configured(job, 48)
    found = diagnosed(job, saturated(job, configuration, offered))
    assert found.cause == "hot key"
    assert {found.vertex, *found.also} == {"max", "join"}
    without = altered(job, max={"keys": None}, join={"keys": None})
    assert found.effect is not None
    assert found.effect.rate_then == pytest.approx(saturated(without, configuration, offered).achieved_rate, rel=0.2)
    assert found.effect.gain > 0.3


def test_q1_with_few_partitions_is_bound_by_them() -> None:
    job = load_job("nexmark-q1")
    limited = altered(job, calc={"max_parallelism": 6})
    configuration, offered = configured(limited, 20)
    found = diagnosed(limited, saturated(limited, configuration, offered))
    assert (found.vertex, found.cause) == ("calc", "max parallelism")
    assert found.effect is not None and found.effect.change == "6 -> 12 tasks of calc"
    more = Configuration({**configuration.parallelism, "calc": 12}, configuration.memory_mb)
    assert found.effect.rate_then == pytest.approx(saturated(job, more, offered).achieved_rate, rel=0.1)


@pytest.mark.parametrize(("memory_mb", "cause"), [(8192, "state reads"), (65536, "waiting")])
def test_q8_lacks_memory_or_waits_for_its_windows(memory_mb: float, cause: str) -> None:
    job = load_job("nexmark-q8")
    configuration, offered = configured(job, 48, memory_mb)
    found = diagnosed(job, saturated(job, configuration, offered))
    assert found.cause == cause
    if cause == "state reads":
        large = Configuration(configuration.parallelism, 65536)
        assert found.vertex == "join" and found.effect is not None
        assert found.effect.rate_then == pytest.approx(saturated(job, large, offered).achieved_rate, rel=0.2)


def test_a_job_with_room_left_is_bound_by_nothing_known() -> None:
    job = load_job("nexmark-q1")
    configuration, offered = configured(job, 20)
    assert diagnosed(job, saturated(job, configuration, offered / 8)).cause == "unknown"


def test_the_lowest_rate_that_was_not_sustained_shows_the_limit() -> None:
    def window(target: float, achieved: float) -> MeasuredWindow:
        return MeasuredWindow(target, achieved, 30, 0, pa.table({}))

    low, high, higher = window(100, 100), window(200, 150), window(300, 140)
    assert limit_window([high, low, higher]) is high
    assert limit_window([low, window(120, 119.5)]).target_rate == 120
    assert limit_window([low, window(400, 0)]) is low
