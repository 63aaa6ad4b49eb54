"""Whether a plan made the job worse."""

import pytest

from pipelines.apply.applied import Effect, VertexEffect, harm


def effect(rate: float | None, backpressure: float | None) -> Effect:
    source = VertexEffect(
        operators=("source",),
        records_in_per_s=rate,
        expected_records_in_per_s=None,
        busyness=None,
        expected_busyness=None,
        backpressure=backpressure,
    )
    return Effect(window_s=10.0, rate=rate, target_rate=1000.0, vertices=(source,))


@pytest.mark.parametrize(
    ("before", "after", "worse"),
    [
        ((1000.0, 0.0), (800.0, 0.5), True),
        ((1000.0, 0.3), (800.0, 0.5), True),
        # Less was offered: nothing holds the sources back.
        ((1000.0, 0.0), (500.0, 0.05), False),
        # It runs at its capacity, before and after, and the capacity has become less.
        ((1000.0, 1.0), (800.0, 1.0), True),
        ((1000.0, 0.0), (950.0, 0.5), False),
        ((None, 0.0), (800.0, 0.5), False),
        ((1000.0, 0.0), (800.0, None), False),
    ],
)
def test_a_job_is_worse_off_if_its_sources_are_held_back_to_a_lower_rate(
    before: tuple[float | None, float | None], after: tuple[float | None, float | None], worse: bool
) -> None:
    assert (harm(effect(*before), effect(*after), ["source"]) is not None) == worse
