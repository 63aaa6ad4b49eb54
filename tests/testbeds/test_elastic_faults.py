"""The conformance suite of elastic runs finds what it is there to find: each fault below must fail its test."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from testbeds.elastic_conformance import ElasticConformance
from testbeds.protocol import Configuration, Rescale, Served
from testbeds.simulator import Simulator
from testbeds.suite import small_job

CONFIGURATION = Configuration(parallelism={"source": 2, "map": 1, "count": 1, "sink": 1}, memory_mb=65536)
MORE = replace(CONFIGURATION, parallelism={"source": 2, "map": 2, "count": 2, "sink": 2})
RATE = 24_000.0
"""About a quarter of what the small job takes with one task each."""


class Faulty:
    """The simulator with what it says changed on the way out."""

    def __init__(self, served: Callable[[Served], Served], rescaled: Callable[[Rescale], Rescale]) -> None:
        self.run = Simulator().deploy(small_job(), CONFIGURATION, run="conformance-1", seed=1)
        self._served, self._rescaled = served, rescaled

    @property
    def configuration(self) -> Configuration:
        return self.run.configuration

    def serve(self, rate: float, seconds: float) -> Served:
        return self._served(self.run.serve(rate, seconds))

    def rescale(self, configuration: Configuration) -> Rescale:
        return self._rescaled(self.run.rescale(configuration))


def same(value: Any) -> Any:
    return value


def of_activity(**changes: Callable[[Any], Any]) -> Callable[[Served], Served]:
    """Columns of every operator's activity changed."""

    def change(served: Served) -> Served:
        found = {
            name: replace(did, **{column: f(getattr(did, column)) for column, f in changes.items()})
            for name, did in served.activity.items()
        }
        return replace(served, activity=found)

    return change


FAULTS: dict[str, tuple[str, dict[str, Any], Callable[[Served], Served], Callable[[Rescale], Rescale]]] = {
    "records that are lost": (
        "test_what_arrives_is_read_or_waits",
        {"rate": RATE, "more": MORE},
        lambda s: replace(s, read=0.999 * s.read),
        same,
    ),
    "a lag that is never paid back": (
        "test_what_is_too_much_is_paid_back_later",
        {"rate": RATE},
        lambda s: replace(s, lag=s.lag + 1e6),
        same,
    ),
    "work without records": (
        "test_no_records_no_work",
        {"rate": RATE},
        of_activity(records_in=lambda v: v + 1),
        same,
    ),
    "a task that does not report": (
        "test_every_task_of_every_operator_is_reported",
        {"rate": RATE, "job": small_job()},
        of_activity(busy_s=lambda v: v[1:]),
        same,
    ),
    "busier than time allows": (
        "test_every_task_of_every_operator_is_reported",
        {"rate": RATE, "job": small_job()},
        of_activity(busy_s=lambda v: v + 1.0),
        same,
    ),
    "a stateless operator with state": (
        "test_state_is_where_it_is_kept",
        {"rate": RATE, "job": small_job()},
        of_activity(state_bytes=lambda v: v + 1),
        same,
    ),
    "queues that are not reported": (
        "test_overload_shows_as_full_queues_and_lag",
        {"rate": RATE},
        of_activity(input_queue_share=lambda v: 0 * v),
        same,
    ),
    "a downtime that differs from the stated one": (
        "test_lag_grows_while_the_job_is_down_and_is_caught_up",
        {"rate": RATE, "more": MORE},
        same,
        lambda r: replace(r, downtime_s=r.downtime_s / 2),
    ),
    "state that is lost": (
        "test_state_outlives_a_rescale",
        {"rate": RATE, "more": MORE},
        same,
        lambda r: replace(r, state_mb=0.0),
    ),
    "tasks that do not help": (
        "test_more_tasks_read_more",
        {"rate": RATE, "more": CONFIGURATION},
        same,
        same,
    ),
    "a restart that takes no time": (
        "test_to_the_same_configuration_is_a_restart",
        {"rate": RATE, "configuration": CONFIGURATION},
        same,
        lambda r: replace(r, downtime_s=0.0),
    ),
    "a job that stops when it refuses": (
        "test_what_cannot_be_leaves_the_job_running",
        {"rate": RATE, "configuration": CONFIGURATION, "testbed": Simulator(), "job": small_job()},
        lambda s: replace(s, running_s=s.seconds - 1),
        same,
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_suite_finds(fault: str) -> None:
    test, arguments, served, rescaled = FAULTS[fault]
    suite = ElasticConformance()
    if fault != "tasks that do not help":
        getattr(suite, test)(Faulty(same, same), **arguments)
    with pytest.raises((AssertionError, ValueError)):
        getattr(suite, test)(Faulty(served, rescaled), **arguments)
