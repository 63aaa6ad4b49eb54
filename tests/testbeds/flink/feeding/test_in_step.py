"""Sources that replay recordings of the same time, at the same point of it."""

import pytest

from models.job import Job
from testbeds.flink.feeding.in_step import InStep, in_proportion
from testbeds.suite import small_job


def two_sources() -> Job:
    document = small_job().model_dump(mode="json", by_alias=True)
    source = document["operators"][0]
    document["operators"] = [
        source | {"name": "orders", "rate_share": 0.5},
        source | {"name": "payments", "rate_share": 0.5},
        *document["operators"][1:],
    ]
    edge = document["edges"][0]
    document["edges"] = [edge | {"from": "orders"}, edge | {"from": "payments"}, *document["edges"][1:]]
    return Job.model_validate(document)


def test_the_rate_is_divided_by_the_records_recorded_in_the_same_time() -> None:
    job = in_proportion(two_sources(), {"orders": 20_000, "payments": 5_000})
    assert {o.name: o.rate_share for o in job.sources} == {"orders": 0.8, "payments": 0.2}
    assert job.scaled_operators == two_sources().scaled_operators
    assert in_proportion(two_sources(), {"orders": 20_000}) == two_sources()


def test_all_continue_from_where_the_furthest_is() -> None:
    in_step = InStep({"orders": 20_000, "payments": 5_000})
    assert in_step.shifts == {"orders": 0, "payments": 0}
    assert in_step.align({"orders": 8000.0, "payments": 2000.0}) == {"orders": 0, "payments": 0}
    # Orders were held back: 10,000 of 20,000, where payments have passed through their recording 1.2 times.
    assert in_step.align({"orders": 10_000.0, "payments": 6000.0}) == {"orders": 14_000, "payments": 0}
    # From there both go on in proportion, and nothing more is skipped.
    assert in_step.align({"orders": 14_000.0, "payments": 7000.0}) == {"orders": 14_000, "payments": 0}
    # Then payments are held back: orders are at 40,000 of 20,000.
    assert in_step.align({"orders": 26_000.0, "payments": 7000.0}) == {"orders": 14_000, "payments": 3000}


@pytest.mark.parametrize("records", [{}, {"clicks": 1000}])
def test_one_recording_alone_skips_nothing(records: dict[str, int]) -> None:
    assert InStep(records).align({"clicks": 5.0}) == {}
