"""Every job of the catalogue runs on the embedded testbed, and measures there as its file says."""

import pyarrow.compute as pc
import pytest

from models.job import Job, records_in_per_source_record
from pipelines.inputs.catalogue import job_names, load_job
from testbeds.protocol import Configuration
from testbeds.simulator import Physics, Simulator


def low_rate(job: Job) -> float:
    """A third of what the first operator to be busy takes with one task, so that contention is small."""
    ratio = records_in_per_source_record(job)
    return min(1 / (ratio[o.name] * o.cost.cpu_s) for o in job.operators) / 3


@pytest.mark.parametrize("name", job_names())
def test_record_ratios_and_true_rates_are_those_of_the_file(name: str) -> None:
    job = load_job(name)
    configuration = Configuration(parallelism={o.name: 1 for o in job.operators}, memory_mb=65536)
    with Simulator(physics=Physics().ideal()).deploy(job, configuration, run="r", seed=1) as run:
        rate = low_rate(job)
        run.inject(rate, 120.0, "warmup")
        window = run.inject(rate, 120.0, "observe")
    assert window.achieved_rate == pytest.approx(rate, rel=1e-9)
    expected = records_in_per_source_record(job)
    totals = window.samples.group_by("operator").aggregate([("records_in", "sum"), ("busy_s", "sum")]).to_pylist()
    emitted = window.achieved_rate * window.seconds
    for row in totals:
        operator = job.operator(row["operator"])
        assert row["records_in_sum"] / emitted == pytest.approx(expected[operator.name], rel=1e-9), operator.name
        assert row["busy_s_sum"] / row["records_in_sum"] == pytest.approx(operator.cost.cpu_s, rel=1e-9), operator.name


@pytest.mark.parametrize("name", job_names())
def test_stateful_operators_touch_state_and_others_do_not(name: str) -> None:
    job = load_job(name)
    configuration = Configuration(parallelism={o.name: 1 for o in job.operators}, memory_mb=65536)
    with Simulator().deploy(job, configuration, run="r", seed=1) as run:
        samples = run.inject(low_rate(job), 60.0, "observe").samples
    for operator in job.operators:
        own = samples.filter(pc.field("operator") == operator.name)
        assert (pc.sum(own["state_written_bytes"]).as_py() > 0) == (operator.state is not None)
