"""Objectives as they may be written, and what is said of those that are not."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.errors import InvalidInput
from models.objectives.objectives import LagObjective, Objectives, PriceObjective, RecoveryObjective
from models.objectives.parsing import EXAMPLE, parse_objectives


def test_the_three_objectives() -> None:
    found = parse_objectives(EXAMPLE)
    assert found.lag == LagObjective(share=0.99, limit_s=30)
    assert found.recovery == RecoveryObjective(outage_s=900, within_s=1200, restart_s=0)
    assert found.price == PriceObjective(usd_per_hour=Decimal(12))
    assert found.text == "lag p99 < 30 s, recover 15 min outage in 20 min, at most 12.00 $/h"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("at most 0.5 USD/h", "at most 0.50 $/h"),
        ("  LAG  P99.9<=1min ", "lag p99.9 < 1 min"),
        (
            "at most 7$/h,recover 90 s outage in 1 h with 0.5 min restart",
            "recover 90 s outage in 1 h with 30 s restart, at most 7.00 $/h",
        ),
        ("lag p50 < 1.5 min", "lag p50 < 90 s"),
    ],
)
def test_case_blanks_order_and_units_are_free(text: str, same: str) -> None:
    assert parse_objectives(text).text == same
    assert parse_objectives(same) == parse_objectives(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be written like 'lag p99 < 30 s, recover 15 min outage in 20 min, at most 12"),
        ("fast", "but got 'fast'"),
        ("lag p99 < 30 s,", "one of them is empty in 'lag p99 < 30 s,'"),
        ("lag < 30 s", "written like 'lag p99 < 30 s', but got 'lag < 30 s'"),
        ("lag p99 > 30 s", "written like 'lag p99 < 30 s', but got 'lag p99 > 30 s'"),
        ("lag p99 < 3 m", "the unit of a duration must be s, min or h, but got '3 m'"),
        ("lag p99 < 30", "written like 'lag p99 < 30 s'"),
        ("lag p99 < 1 s", "must allow 5 s or more, which is how finely lag is predicted, but got 1 s"),
        ("lag p100 < 30 s", "must be p50 to p99.99, but got p100"),
        ("recover 15 min outage", "written like 'recover 15 min outage in 20 min'"),
        ("recover 0 s outage in 1 min", "above 0 and at most 168 h, but got '0 s'"),
        ("recover 1 s outage in 169 h", "at most 168 h, but got '169 h'"),
        (
            "recover 15 min outage in 20 s with 30 s restart",
            "the restart must be shorter than the time to recover in, but got a restart of 30 s and 20 s",
        ),
        ("at most 12 EUR/h", "written like 'at most 12 \\$/h', but got 'at most 12 eur/h'"),
        ("at most 0 $/h", "above 0 and at most 1,000,000,000 \\$/h, but got 0"),
        ("lag p99 < 30 s, lag p95 < 10 s", "one lag objective may be stated, but got two"),
    ],
)
def test_what_is_wrong_is_stated_with_what_may_be_written(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse_objectives(text)


@given(st.text(max_size=400))
def test_any_text_is_objectives_or_one_short_error(text: str) -> None:
    try:
        assert isinstance(parse_objectives(text), Objectives)
    except InvalidInput as error:
        assert len(str(error)) < 400
