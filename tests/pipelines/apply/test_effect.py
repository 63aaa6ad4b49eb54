"""The observed effect, from two readings of a job's counters."""

from collections.abc import Callable, Mapping

import pytest

from models.errors import SluiceError
from models.plan.content import Plan, PlanContent
from pipelines.apply.effect import effect_of


@pytest.fixture
def plan(make_plan: Callable[..., PlanContent]) -> Plan:
    content = make_plan({"tm1": {"source": 1, "flatmap": 1, "count": 2}}, rate=1000.0)
    return Plan(**{n: getattr(content, n) for n in PlanContent.model_fields}, version=1, created_at="2026-01-01")


def counters(busy: float, backpressured: float, idle: float, **records: float) -> dict[str, float]:
    times = {"Busy": busy, "BackPressured": backpressured, "Idle": idle}
    return {f"accumulate{name}TimeMs": value for name, value in times.items()} | records


ZERO = counters(0, 0, 0, numRecordsIn=0)
SOURCE_BEGIN = counters(0, 0, 0, **{"Source__source.numRecordsOut": 100})


def observed(plan: Plan, source: Mapping[str, float], *count: Mapping[str, float]) -> list[object]:
    effect = effect_of(plan, 10.0, [(("source",), [SOURCE_BEGIN], [source]), (("count",), [ZERO] * len(count), count)])
    vertex = effect.vertices[1]
    return [effect.rate, vertex.records_in_per_s, vertex.busyness, vertex.expected_busyness, vertex.backpressure]


def test_rates_and_shares_are_over_the_time_that_tasks_count(plan: Plan) -> None:
    """8 s were counted of a window of 10: Flink reports late. At half the rate, half the busyness is expected."""
    source = counters(1000, 0, 7000, **{"Source__source.numRecordsOut": 4100})
    count = counters(2000, 4000, 2000, numRecordsIn=40_000), counters(6000, 0, 2000, numRecordsIn=40_000)
    rate, records, busy, expected, backpressure = observed(plan, source, *count)
    assert (rate, records, busy, backpressure) == (500.0, 10_000.0, 0.5, 0.25)
    # 20 words of each of 1,000 sentences/s on 2 tasks of 16,667 words/s: 0.6 at the target rate.
    assert expected == pytest.approx(0.3)


def test_what_flink_does_not_report_is_unknown(plan: Plan) -> None:
    assert observed(plan, counters(1000, 0, 7000), {"numRecordsIn": 5}) == [None] * 5


def test_counters_of_a_restarted_task_are_no_measurement(plan: Plan) -> None:
    source = counters(1000, 0, 7000, **{"Source__source.numRecordsOut": 50})
    with pytest.raises(SluiceError, match="restarted"):
        observed(plan, source, ZERO)
