"""The jobs that a person looks for."""

from datetime import UTC, datetime

import pytest

from pipelines.pages.choosing import STATES, JobState, chosen
from pipelines.pages.operation import Drift, Unfollowed
from pipelines.pages.overview import JobRow
from pipelines.store.pins import PlanPin

AT = datetime(2026, 3, 1, tzinfo=UTC)


def _row(job: str, **facts: object) -> JobRow:
    return JobRow.model_validate({"job": job, "plan": None, "actual": None, "drift": None, "faults": ()} | facts)


def _drift(drifted: bool) -> Drift:
    return Drift(drifted=drifted, reason="made for tests", plan_version=1, looked_at=AT)


ROWS = (
    _row("orders-eu", drift=_drift(True)),
    _row("orders-us", drift=_drift(False), pin=PlanPin(job="orders-us", version=1, by="a", reason="b", pinned_at="c")),
    _row("clicks-eu", unfollowed=Unfollowed(unreadable=True, reason="no token", since=AT), faults=("damaged",)),
)


@pytest.mark.parametrize(
    ("search", "jobs"),
    [
        ("", ["orders-eu", "orders-us", "clicks-eu"]),
        ("orders", ["orders-eu", "orders-us"]),
        ("EU", ["orders-eu", "clicks-eu"]),
        ("eu orders", ["orders-eu"]),
        ("ordersx", []),
        (".*", []),
    ],
)
def test_all_words_are_parts_of_the_name(search: str, jobs: list[str]) -> None:
    assert [row.job for row in chosen(ROWS, search, "any", ())] == jobs


@pytest.mark.parametrize(
    ("state", "jobs"),
    [
        ("any", ["orders-eu", "orders-us", "clicks-eu"]),
        ("approval", ["orders-us"]),
        ("drifted", ["orders-eu"]),
        ("unchecked", ["clicks-eu"]),
        ("unfollowed", ["clicks-eu"]),
        ("pinned", ["orders-us"]),
        ("damaged", ["clicks-eu"]),
    ],
)
def test_a_state_leaves_those_that_are_in_it(state: JobState, jobs: list[str]) -> None:
    assert [row.job for row in chosen(ROWS, "", state, {"orders-us"})] == jobs
    assert state in STATES
