"""Tasks and rates from nominal costs, checked by hand on Nexmark q1's chain of operators."""

import pytest

from models.errors import Infeasible
from models.job import records_in_per_source_record
from models.scaling.provision import HEADROOM, provision, sustainable_rate
from pipelines.inputs.catalogue import load_job


@pytest.mark.parametrize("name", ["nexmark-q1", "nexmark-q5", "nexmark-q11"])
def test_the_sustainable_rate_is_what_its_slots_are_just_busy_with(name):
    job = load_job(name)
    rate = sustainable_rate(job, 70)
    # Busy cores at that rate if tasks could be split: no more than 70, and no fewer than 70 less one for each operator.
    ratio = records_in_per_source_record(job)
    busy = sum(rate * ratio[o.name] * o.cost.cpu_s for o in job.operators)
    assert 70 - len(job.operators) <= busy <= 70


def test_a_job_is_provisioned_with_headroom():
    job = load_job("nexmark-q11")
    tasks = provision(job, 600_000, 70)
    # 1.2 x 600 000 x 0.92 bids/s x 18.11594 us = 12.0 cores; 1.2 x 600 000 x 3.23 us = 2.3 cores.
    assert HEADROOM == 1.2
    assert tasks == {"source": 3, "bids": 2, "session-window": 12, "sessions": 1, "sink": 1}


def test_without_records_one_task_each():
    assert set(provision(load_job("nexmark-q11"), 0, 70).values()) == {1}


def test_a_cluster_that_is_too_small_limits_or_refuses():
    job = load_job("nexmark-q11")
    assert sum(provision(job, 1e9, 20).values()) == 20
    with pytest.raises(Infeasible):
        provision(job, 1, 4)
    with pytest.raises(Infeasible):
        sustainable_rate(job, 4)
